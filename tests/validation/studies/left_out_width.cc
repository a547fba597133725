#include "tests/validation/studies/left_out_width.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::cli {
namespace {

constexpr double kOutside = 0.05;  // on either side

/// A value with its weight.
using Weighted = std::vector<std::pair<double, double>>;

/// The least value with at least this share of the weight at or below it.
double quantile_of(Weighted values, double share) {
  std::sort(values.begin(), values.end());
  double whole = 0, sum = 0;
  for (const auto& [value, weight] : values) whole += weight;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= share * whole * (1 - 1e-12)) return value;
  }
  return values.back().first;
}

struct Ends {
  double low, high;  // logarithms
};

/// Of all sources but one.
Ends quantiles_of(const LeftOutErrors& errors, const std::string* without) {
  Weighted rows;
  for (const auto& [name, of] : errors)
    if (without == nullptr || name != *without)
      for (const double x : of) rows.emplace_back(x, 1 / static_cast<double>(of.size()));
  return {quantile_of(rows, kOutside), quantile_of(rows, 1 - kOutside)};
}

Ends conformal(const LeftOutErrors& errors) {
  const double share = 1 - kOutside * (1 - 1 / static_cast<double>(errors.size()));
  Weighted below, above;
  for (const auto& [name, of] : errors) {
    const Ends others = quantiles_of(errors, &name);
    const double weight = 1 / static_cast<double>(of.size());
    for (const double x : of) {
      below.emplace_back(others.low - x, weight);
      above.emplace_back(x - others.high, weight);
    }
  }
  const Ends all = quantiles_of(errors, nullptr);
  return {std::min(0.0, all.low - quantile_of(std::move(below), share)),
          std::max(0.0, all.high + quantile_of(std::move(above), share))};
}

double share_inside(const std::vector<double>& rows, const Ends& ends) {
  const auto inside = std::count_if(rows.begin(), rows.end(),
                                    [&](double x) { return ends.low <= x && x <= ends.high; });
  return static_cast<double>(inside) / static_cast<double>(rows.size());
}

}  // namespace

std::optional<LeftOutWidth> left_out_width(const LeftOutErrors& errors) {
  if (errors.size() < kFewestSources) return std::nullopt;
  const Ends ends = conformal(errors);
  LeftOutWidth width{
      .low = std::exp(ends.low), .high = std::exp(ends.high), .sources = errors.size()};
  for (const auto& [name, of] : errors) width.rows += of.size();
  if (errors.size() == kFewestSources) return width;
  double held = 0;
  for (const auto& [name, of] : errors) {
    LeftOutErrors others = errors;
    others.erase(name);
    held += share_inside(of, conformal(others)) / static_cast<double>(errors.size());
  }
  width.held = held;
  return width;
}

}  // namespace rehearse::cli
