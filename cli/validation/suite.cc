#include "cli/validation/suite.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string percent(double ratio, int decimals) {
  return fmt::format("{:.{}f} %", ratio * 100, decimals);
}

}  // namespace

double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 == sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - std::floor(place));
}

std::string list_of(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += "- " + item + "\n";
  return text.empty() ? "None.\n" : text;
}

SuiteSummary summary_of(std::string name, std::vector<double> errors) {
  SuiteSummary s{.name = std::move(name), .rows = errors.size()};
  if (errors.empty()) return s;
  for (double& e : errors) {
    s.bias += e / static_cast<double>(errors.size());
    s.mean_error += std::abs(e) / static_cast<double>(errors.size());
    if (std::abs(e) > std::abs(s.worst_error)) s.worst_error = e;
    e = std::abs(e);
  }
  std::sort(errors.begin(), errors.end());
  s.median_error = quantile(errors, 0.5);
  s.p90_error = quantile(errors, 0.9);
  return s;
}

Table suite_table(const std::vector<SuiteSummary>& suites) {
  Table table({{"suite", Align::kLeft},
               {"rows"},
               {"mean error"},
               {"median error"},
               {"p90 error"},
               {"worst error"},
               {"bias"},
               {"in the interval"},
               {"fitted rows"},
               {"blind rows"}});
  for (const SuiteSummary& s : suites)
    table.add({s.name, fmt::format("{}", s.rows), percent(s.mean_error, 2),
               percent(s.median_error, 2), percent(s.p90_error, 2), signed_percent(s.worst_error),
               signed_percent(s.bias), s.interval_coverage ? percent(*s.interval_coverage, 0) : "–",
               fmt::format("{}", s.fitted_rows), fmt::format("{}", s.blind_rows)});
  return table;
}

Json json_suites(const std::vector<SuiteSummary>& suites) {
  Json list = Json::array();
  for (const SuiteSummary& s : suites) {
    Json entry = {{"name", s.name},
                  {"rows", s.rows},
                  {"mean_error", s.mean_error},
                  {"median_error", s.median_error},
                  {"p90_error", s.p90_error},
                  {"worst_error", s.worst_error},
                  {"bias", s.bias},
                  {"interval_coverage", nullptr},
                  {"fitted_rows", s.fitted_rows},
                  {"blind_rows", s.blind_rows}};
    if (s.interval_coverage) entry["interval_coverage"] = *s.interval_coverage;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace rehearse::cli
