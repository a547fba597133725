#include "sim/base/csv_row.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse {

bool CsvRow::has(std::string_view column) const {
  if (table_.has(column)) return true;
  if (row_ == 0) {
    const Status missing = table_.require({column});
    errors_.diagnostics.push_back(missing.error().diagnostics.front());
  }
  return false;
}

bool CsvRow::filled(std::string_view column) const {
  if (!has(column)) return false;
  if (!table_.cell(row_, column).empty()) return true;
  report(column, "is empty", "a value");
  return false;
}

std::string CsvRow::text(std::string_view column) const {
  return has(column) ? std::string(table_.cell(row_, column)) : std::string();
}

std::string CsvRow::required(std::string_view column) const {
  return filled(column) ? text(column) : std::string();
}

std::optional<double> CsvRow::number(std::string_view column) const {
  if (!has(column)) return std::nullopt;
  const Result<std::optional<double>> value = table_.number(row_, column);
  if (!value) {
    errors_.diagnostics.push_back(value.error().diagnostics.front());
    return std::nullopt;
  }
  if (*value && **value < 0) {
    report(column, fmt::format("{} is below zero", **value), "a number, 0 or more");
    return std::nullopt;
  }
  return *value;
}

std::optional<std::uint32_t> CsvRow::count(std::string_view column) const {
  const std::optional<double> value = number(column);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || *value > std::numeric_limits<std::uint32_t>::max()) {
    report(column, fmt::format("{} is not a count", *value), "a whole number, 0 or more");
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*value);
}

std::optional<double> CsvRow::within(std::string_view column, double unit,
                                     const Largest& most) const {
  const std::optional<double> value = number(column);
  if (!value || *value * unit <= most.si) return value ? std::optional(*value * unit) : value;
  report(column, fmt::format("{} is out of range", text(column)), at_most(most));
  return std::nullopt;
}

double CsvRow::required_number(std::string_view column) const {
  return filled(column) ? number(column).value_or(0) : 0;
}

std::uint32_t CsvRow::required_count(std::string_view column) const {
  return filled(column) ? count(column).value_or(0) : 0;
}

std::size_t CsvRow::choice(std::string_view column, std::span<const std::string_view> names) const {
  const std::string value = text(column);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == value) return i;
  if (has(column)) report(column, fmt::format("unknown value '{}'", value), suggest(value, names));
  return 0;
}

void CsvRow::report(std::string_view column, std::string problem, std::string expected,
                    std::string nearest) const {
  errors_.diagnostics.push_back(
      table_.problem(row_, column, std::move(problem), std::move(expected), std::move(nearest)));
}

}  // namespace rehearse
