// Table: rows for people (aligned), for programs (CSV) and for pull requests (Markdown).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;  ///< with its unit: "step time (ms)"
  Align align = Align::kRight;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// REQUIRES: one cell per column.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }

  /// Columns are as wide as their widest cell; columns without any content are left out. Cells of
  /// left-aligned columns are cut to `shorten_to` characters with an ellipsis; rows behind the
  /// first `most_rows` are counted instead of shown. Control characters are shown as spaces, here
  /// and in Markdown.
  std::string text(std::size_t shorten_to = 60, std::size_t most_rows = SIZE_MAX) const;
  /// RFC 4180, with a line of headings.
  std::string csv() const;
  std::string markdown() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// How many columns of a terminal a UTF-8 text takes (every character one).
std::size_t display_width(std::string_view text);

/// The first `width` characters, with an ellipsis where something was cut.
std::string shortened(std::string_view text, std::size_t width);

/// Names come from the input: a line break or an escape sequence in one must not reach a terminal.
std::string printable(std::string text);

/// A bar of `width` characters, filled to `share` in eighths.
std::string bar(double share, std::size_t width);

}  // namespace rehearse::cli
