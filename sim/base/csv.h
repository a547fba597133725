// Tables of comma-separated values by RFC 4180: the first line names the columns; a cell may be
// quoted, and then hold commas, line breaks and doubled quotes; lines end with LF or CRLF. A byte
// order mark and empty lines are passed over.
//
//   const CsvTable table = TRY(CsvTable::load(path));
//   TRY(table.require({"size_bytes", "time_us"}));
//   for (std::size_t row = 0; row < table.rows(); ++row) {
//     const std::optional<double> time = TRY(table.number(row, "time_us"));
//     ...
//
// Invariants:
//  1. Column names are unique and not empty; every row has one cell per column.
//  2. Rows are numbered from 0, and lines from 1; the heading is line 1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse {

class CsvTable {
 public:
  /// `name` is the file name in messages. Fails on a table without a heading, on wrong quoting,
  /// and on rows whose number of cells differs from the number of columns.
  static Result<CsvTable> parse(std::string_view text, std::string name);
  /// The same for a file.
  static Result<CsvTable> load(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t rows() const { return lines_.size(); }
  /// The line on which a row begins.
  std::uint32_t line(std::size_t row) const { return lines_[row]; }

  bool has(std::string_view column) const { return find(column).has_value(); }
  /// Fails on the columns that are missing, each with the nearest name that is there.
  Status require(std::initializer_list<std::string_view> columns) const;

  /// The unquoted text; valid as long as the table, and empty for an empty cell.
  /// REQUIRES: row < rows(), and the column exists (`require`, `has`).
  std::string_view cell(std::size_t row, std::string_view column) const;
  /// A finite decimal number within largest<double>(), or nothing if the cell is empty. REQUIRES:
  /// as `cell`.
  Result<std::optional<double>> number(std::size_t row, std::string_view column) const;

  /// A problem with the value of a cell that only the caller can see, at its place.
  Diagnostic problem(std::size_t row, std::string_view column, std::string problem,
                     std::string expected = {}, std::string nearest = {}) const;

 private:
  class Parser;

  CsvTable() = default;
  std::optional<std::size_t> find(std::string_view column) const;

  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::uint32_t> lines_;
  std::string text_;               // texts of all cells, concatenated row by row
  std::vector<std::size_t> ends_;  // of each cell in text_
};

}  // namespace rehearse
