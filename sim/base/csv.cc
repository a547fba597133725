#include "sim/base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/file.h"
#include "sim/base/largest.h"
#include "sim/base/text.h"

namespace rehearse {

class CsvTable::Parser {
 public:
  Parser(std::string_view text, CsvTable& table) : rest_(text), table_(table) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  Status parse() {
    while (skip_empty_lines()) {
      const std::uint32_t line = line_;
      const std::size_t before = table_.ends_.size();
      TRY(read_row());
      const std::size_t cells = table_.ends_.size() - before;
      if (table_.columns_.empty()) {
        TRY(take_heading(line));
      } else if (cells == table_.columns_.size()) {
        table_.lines_.push_back(line);
      } else {
        return fail_at(line, counted(cells, "cell"),
                       counted(table_.columns_.size(), "cell") + ", as in the header line");
      }
    }
    if (table_.columns_.empty())
      return fail_in(table_.name_, "is empty", "a header line with the column names");
    return {};
  }

 private:
  tl::unexpected<Error> fail_at(std::uint32_t line, std::string problem, std::string expected) {
    return fail(Diagnostic{.file = table_.name_,
                           .line = line,
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  }

  /// Takes the end of a line, if it is next.
  bool take_line_end() {
    const std::size_t size = rest_.starts_with("\r\n") ? 2 : rest_.starts_with("\n") ? 1 : 0;
    rest_.remove_prefix(size);
    line_ += size > 0;
    return size > 0;
  }

  /// Whether any text follows them.
  bool skip_empty_lines() {
    while (take_line_end()) {
    }
    return !rest_.empty();
  }

  Status read_row() {
    while (true) {
      TRY(rest_.starts_with('"') ? read_quoted() : read_plain());
      table_.ends_.push_back(table_.text_.size());
      if (rest_.empty() || take_line_end()) return {};
      if (rest_.front() != ',')
        return fail_at(line_, "text after a quoted cell", "a comma or the end of the line");
      rest_.remove_prefix(1);
    }
  }

  Status read_plain() {
    const std::size_t size = std::min(rest_.find_first_of(",\"\r\n"), rest_.size());
    table_.text_ += rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (rest_.starts_with('"'))
      return fail_at(line_, "a quote inside a cell", "a quoted cell with this quote doubled");
    if (rest_.starts_with('\r') && !rest_.starts_with("\r\n"))
      return fail_at(line_, "a carriage return inside a cell", "lines that end with LF or CRLF");
    return {};
  }

  Status read_quoted() {
    const std::uint32_t begin = line_;
    rest_.remove_prefix(1);
    while (true) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos)
        return fail_at(begin, "an unterminated quoted cell", "a closing quote");
      const std::string_view part = rest_.substr(0, quote);
      line_ += static_cast<std::uint32_t>(std::ranges::count(part, '\n'));
      table_.text_ += part;
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) return {};
      table_.text_ += '"';
      rest_.remove_prefix(1);
    }
  }

  /// The first row names the columns and is not a row of the table.
  Status take_heading(std::uint32_t line) {
    std::size_t begin = 0;
    for (const std::size_t end : table_.ends_) {
      std::string column = table_.text_.substr(begin, end - begin);
      begin = end;
      if (column.empty())
        return fail_at(line, fmt::format("column {} has no name", table_.columns_.size() + 1),
                       "a name for every column");
      if (table_.has(column))
        return fail_at(line, fmt::format("two columns are called '{}'", column),
                       "unique column names");
      table_.columns_.push_back(std::move(column));
    }
    table_.text_.clear();
    table_.ends_.clear();
    return {};
  }

  std::string_view rest_;
  CsvTable& table_;
  std::uint32_t line_ = 1;
};

Result<CsvTable> CsvTable::parse(std::string_view text, std::string name) {
  CsvTable table;
  table.name_ = std::move(name);
  TRY(Parser(text, table).parse());
  return table;
}

Result<CsvTable> CsvTable::load(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  return parse(text, path.string());
}

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

Status CsvTable::require(std::initializer_list<std::string_view> columns) const {
  const std::vector<std::string_view> names(columns_.begin(), columns_.end());
  Error missing;
  for (const std::string_view column : columns)
    if (!has(column))
      missing.diagnostics.push_back({.file = name_,
                                     .line = 1,
                                     .key = std::string(column),
                                     .problem = "no such column",
                                     .nearest = suggest(column, names)});
  if (!missing.diagnostics.empty()) return tl::unexpected(std::move(missing));
  return {};
}

std::string_view CsvTable::cell(std::size_t row, std::string_view column) const {
  const std::optional<std::size_t> at = find(column);
  REHEARSE_CHECK(at && row < rows(), "{}: row {} of {}, column {}", name_, row, rows(), column);
  const std::size_t index = row * columns_.size() + *at;
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

Result<std::optional<double>> CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string_view text = cell(row, column);
  if (text.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  const std::string range = error == std::errc::result_out_of_range ? at_most(largest<double>())
                            : std::isfinite(value)                  ? range_missed<double>(value)
                                                                    : "";
  if (whole && !range.empty())
    return fail(problem(row, column, fmt::format("'{}' is out of range", text), range));
  if (error != std::errc() || !whole || !std::isfinite(value))
    return fail(problem(row, column, fmt::format("'{}' is not a number", text),
                        "a finite decimal number, such as 12.5"));
  return value;
}

Diagnostic CsvTable::problem(std::size_t row, std::string_view column, std::string problem,
                             std::string expected, std::string nearest) const {
  return {.file = name_,
          .line = line(row),
          .key = std::string(column),
          .problem = std::move(problem),
          .expected = std::move(expected),
          .nearest = std::move(nearest)};
}

}  // namespace rehearse
