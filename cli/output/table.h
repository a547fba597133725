// Table: rows for people (aligned, as wide as the screen at most), for programs (CSV) and for pull
// requests (Markdown).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/utf8.h"

namespace rehearse::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;  ///< with its unit: "step time (ms)"
  Align align = Align::kRight;
  bool prose = false;     ///< cells may take several lines
  bool optional = false;  ///< left out first if the screen is too narrow
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// REQUIRES: one cell per column.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }

  /// Columns are as wide as their widest cell; columns without content are left out. Cells of
  /// left-aligned columns are cut to `shorten_to` characters with an ellipsis, unless they are
  /// prose; rows after the first `most_rows` are counted instead of shown. If the table is wider
  /// than the page, these steps are taken in turn: leave out optional columns, break headings,
  /// narrow left-aligned columns, leave out columns from the right. A line below the table counts
  /// the columns left out; `all` names the format that has them. Cells are printable (utf8.h) in
  /// every format.
  std::string text(std::size_t shorten_to = 60, std::size_t most_rows = SIZE_MAX,
                   std::string_view all = "json") const;
  /// RFC 4180, with a line of headings. A text that a spreadsheet would take for a formula begins
  /// with an apostrophe.
  std::string csv() const;
  std::string markdown() const;

 private:
  /// The width of each column, 0 if it is left out; and the number of columns left out for lack of
  /// room.
  std::pair<std::vector<std::size_t>, std::size_t> widths(std::size_t shorten_to,
                                                          std::size_t rows) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The number of characters per line: that of the terminal, or 100 if stdout is not a terminal.
std::size_t page_width();

/// The number of terminal columns of a UTF-8 text (one per character).
std::size_t display_width(std::string_view text);

/// The first `width` characters, with an ellipsis if anything was cut.
std::string shortened(std::string_view text, std::size_t width);

/// The sentence in lines of at most `width` characters, broken at spaces; longer words are cut.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The text escaped for Markdown, so that a name cannot form a tag, link, image or mention.
std::string markdown_text(std::string_view text);

/// A bar of `width` characters, filled to `share` in eighths.
std::string bar(double share, std::size_t width);

}  // namespace rehearse::cli
