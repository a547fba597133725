#include "cli/validation/suite.h"

#include <cmath>

#include "sim/base/statistics.h"

namespace rehearse::cli {

SuiteSummary summary_of(std::string name, const std::vector<double>& errors) {
  SuiteSummary s{.name = std::move(name), .rows = errors.size()};
  std::vector<double> magnitudes;
  for (const double e : errors) {
    s.bias += e / static_cast<double>(errors.size());
    s.mean_error += std::abs(e) / static_cast<double>(errors.size());
    if (std::abs(e) > std::abs(s.worst_error)) s.worst_error = e;
    magnitudes.push_back(std::abs(e));
  }
  std::ranges::sort(magnitudes);
  s.median_error = quantile(magnitudes, 0.5);
  s.p90_error = quantile(magnitudes, 0.9);
  return s;
}

void Intervals::summarize(SuiteSummary& suite) const {
  if (widths_.empty()) return;
  suite.interval_coverage = static_cast<double>(inside_) / static_cast<double>(widths_.size());
  std::vector<double> sorted = widths_;
  std::ranges::sort(sorted);
  suite.interval_width = quantile(sorted, 0.5);
}

Json suite_json(const SuiteSummary& suite) {
  Json json = {{"rows", suite.rows}};
  for (const SuiteError& error : kSuiteErrors) json[error.key] = suite.*error.value;
  json["interval_coverage"] = suite.interval_coverage;
  json["interval_width"] = suite.interval_width;
  json["fitted_rows"] = suite.fitted_rows;
  json["blind_rows"] = suite.blind_rows;
  return json;
}

Json json_suites(const std::vector<SuiteSummary>& suites) {
  Json list = Json::array();
  for (const SuiteSummary& suite : suites) {
    Json one = {{"name", suite.name}};
    one.add(suite_json(suite));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace rehearse::cli
