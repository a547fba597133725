// CsvRow: a row of a table being read into a struct. Errors are recorded, so that all errors
// of a table are reported at once:
//
//   Result<std::vector<Rate>> rates = read_rows<Rate>(text, "rates.csv", [](const CsvRow& row) {
//     return Rate{.name = row.required("name"), .rate = row.quantity<ByteRate>("rate_gbs", 1e9)};
//   });
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/largest.h"

namespace rehearse {

/// Every reader records a missing column as an error, once, and then treats its cells as empty.
class CsvRow {
 public:
  /// Keeps references to both.
  CsvRow(const CsvTable& table, std::size_t row, Error& errors)
      : table_(table), row_(row), errors_(errors) {}

  /// The text; empty for an empty cell.
  std::string text(std::string_view column) const;
  /// As `text`, and an empty cell is an error.
  std::string required(std::string_view column) const;

  /// A finite number not below zero; nothing where the cell is empty or wrong.
  std::optional<double> number(std::string_view column) const;
  std::optional<std::uint32_t> count(std::string_view column) const;
  /// Within largest<Q>(). `unit` is the SI magnitude of one, such as 1e9 for GB.
  template <class Q>
  std::optional<Q> quantity(std::string_view column, double unit) const {
    const std::optional<double> value = within(column, unit, largest<Q>());
    return value ? std::optional(Q::from_si(*value)) : std::nullopt;
  }
  /// As those above, but an empty cell is an error. An empty or wrong cell gives zero, which has no
  /// effect because the table is refused.
  double required_number(std::string_view column) const;
  std::uint32_t required_count(std::string_view column) const;
  template <class Q>
  Q required_quantity(std::string_view column, double unit) const {
    return filled(column) ? quantity<Q>(column, unit).value_or(Q::from_si(0)) : Q::from_si(0);
  }

  /// The index of the text among `names`; 0, and a recorded error, if it is none of them.
  std::size_t choice(std::string_view column, std::span<const std::string_view> names) const;

  /// Records a problem with the cell that only the caller can see.
  void report(std::string_view column, std::string problem, std::string expected = {},
              std::string nearest = {}) const;

 private:
  bool has(std::string_view column) const;
  bool filled(std::string_view column) const;
  std::optional<double> within(std::string_view column, double unit, const Largest& most) const;

  const CsvTable& table_;
  std::size_t row_;
  Error& errors_;
};

/// The rows of a table, each as `read` makes it from a CsvRow; or all errors of the table.
template <class T, class Read>
Result<std::vector<T>> read_rows(std::string_view text, std::string name, const Read& read) {
  const CsvTable table = TRY(CsvTable::parse(text, std::move(name)));
  std::vector<T> rows;
  Error errors;
  for (std::size_t row = 0; row < table.rows(); ++row)
    rows.push_back(read(CsvRow(table, row, errors)));
  if (!errors.diagnostics.empty()) return tl::unexpected(std::move(errors));
  return rows;
}

/// The same for a table that is compiled into the program. A table that cannot be read is a fault
/// of ours, and no build that passes its tests has one.
template <class T, class Read>
std::vector<T> shipped_rows(std::string_view text, std::string name, const Read& read) {
  Result<std::vector<T>> rows = read_rows<T>(text, std::move(name), read);
  REHEARSE_CHECK(rows, "{}", to_string(rows.error()));
  return std::move(*rows);
}

}  // namespace rehearse
