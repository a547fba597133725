// The width of an interval from rows of sources that were left out: one rule for every kind of
// prediction.
//
// A source is what a new row does not share with the rows in sight: a device, a model, a version or
// a publication. Its rows were predicted without it. The ends are conformal, each on its own side
// (Romano, Patterson, Candès, "Conformalized Quantile Regression", 2019), with sources in the place
// of rows:
//
//   x_s,i   ln(measured ÷ predicted) of row i of source s; every source has the same weight
//   low, high                          quantiles 5 and 95 % of all rows
//   low_s, high_s                      the same without source s
//   d = quantile(1 − 0.05 (1 − 1/S)) of low_s − x_s,i,  u = the same of x_s,i − high_s
//   interval = exp(low − d) to exp(high + u), and 1 lies inside
//
// d and u are what the rows of a source exceed the ends that the others give. They are below zero where
// the ends of the others hold more than 95 %. S sources estimate a share of 5 % no better than to
// a part in S, so few sources leave out less: 3.3 % of the rows on each side with three, 4.5 % with
// ten. Fewer than three tell nothing of a fourth.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::cli {

/// x of each row, by source. No source is empty.
using LeftOutErrors = std::map<std::string, std::vector<double>>;

struct LeftOutWidth {
  double low = 1, high = 1;  ///< factors of the prediction; a 90 % interval of a new source's rows
  std::size_t sources = 0, rows = 0;
  /// Of the rows of a source, the share that the interval of the others holds: the mean over
  /// sources. Absent with three sources, because two have no interval.
  std::optional<double> held = {};
};

inline constexpr std::size_t kFewestSources = 3;

/// Absent with fewer than kFewestSources.
std::optional<LeftOutWidth> left_out_width(const LeftOutErrors& errors);

}  // namespace rehearse::cli
