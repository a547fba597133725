#include "cli/validation/baseline.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Below the precision of errors in tables.
constexpr double kNothing = 5e-5;

constexpr double kMostRows = 1e9, kMostError = 1e9;

std::string percent(double ratio) { return fmt::format("{:.2f} %", ratio * 100); }

Drift drift_between(const SuiteSummary& before, const SuiteSummary& after) {
  if (is_good(before) != is_good(after))
    return is_good(after) ? Drift::kTurnedGood : Drift::kTurnedBad;
  if (after.mean_error > before.mean_error + kNothing) return Drift::kWorse;
  if (after.mean_error < before.mean_error - kNothing) return Drift::kBetter;
  const bool covered =
      before.interval_coverage.has_value() == after.interval_coverage.has_value() &&
      std::abs(before.interval_coverage.value_or(0) - after.interval_coverage.value_or(0)) <
          kNothing;
  return before.rows == after.rows && covered ? Drift::kSame : Drift::kChanged;
}

template <class Part>
std::string before_and_after(const SuiteDrift& suite, const Part& part) {
  const std::string was = suite.before ? part(*suite.before) : "–";
  const std::string is = suite.after ? part(*suite.after) : "–";
  return was == is ? is : fmt::format("{} → {}", was, is);
}

std::string coverage_of(const SuiteSummary& s) {
  return s.interval_coverage ? fmt::format("{:.0f} %", *s.interval_coverage * 100) : "–";
}

bool drifts(const SuiteDrift& suite) { return suite.drift != Drift::kSame; }

}  // namespace

bool is_good(const SuiteSummary& suite) {
  return suite.median_error <= kGoodMedian && suite.interval_coverage.value_or(1) >= kGoodCoverage;
}

Result<std::vector<SuiteSummary>> read_baseline(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  const auto refused = [&](std::string problem) {
    return fail_in(path, std::move(problem), "the output of 'rehearse validate --format json'");
  };
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return refused("is not JSON");
  if (!json.is_object() || json.value("command", nlohmann::json()) != "validate" ||
      !json.contains("suites") || !json["suites"].is_array())
    return refused("is not a result of validate");
  std::vector<SuiteSummary> suites;
  for (const nlohmann::json& suite : json["suites"]) {
    SuiteSummary s;
    std::string beyond;  // the first number out of its range
    try {
      const auto number = [&](const std::string& key, double least, double most) {
        const double value = suite.at(key).get<double>();
        if (!(value >= least && value <= most) && beyond.empty())
          beyond = fmt::format("suites[{}].{} is {}, and not between {} and {}", suites.size(), key,
                               value, least, most);
        return std::clamp(value, least, most);  // a count may be converted
      };
      s.name = suite.at("name").get<std::string>();
      s.rows = static_cast<std::size_t>(number("rows", 0, kMostRows));
      for (const SuiteError& error : kSuiteErrors)
        s.*error.value = number(error.key, -kMostError, kMostError);
      if (!suite.at("interval_coverage").is_null())
        s.interval_coverage = number("interval_coverage", 0, 1);
    } catch (const nlohmann::json::exception&) {
      return refused(fmt::format("suites[{}] lacks a name, rows or an error", suites.size()));
    }
    if (!beyond.empty()) return refused(beyond);
    suites.push_back(std::move(s));
  }
  return suites;
}

std::vector<SuiteDrift> drift_of(const std::vector<SuiteSummary>& before,
                                 const std::vector<SuiteSummary>& after) {
  const auto find = [](const std::vector<SuiteSummary>& suites, const std::string& name) {
    return std::ranges::find(suites, name, &SuiteSummary::name);
  };
  std::vector<SuiteDrift> suites;
  for (const SuiteSummary& is : after) {
    const auto was = find(before, is.name);
    if (was == before.end())
      suites.push_back({is.name, Drift::kNew, {}, is});
    else
      suites.push_back({is.name, drift_between(*was, is), *was, is});
  }
  for (const SuiteSummary& was : before)
    if (find(after, was.name) == after.end())
      suites.push_back({was.name, Drift::kNotMeasured, was, {}});
  return suites;
}

std::size_t count_of(const std::vector<SuiteDrift>& suites, Drift drift) {
  return static_cast<std::size_t>(std::ranges::count_if(
      suites, [drift](const SuiteDrift& suite) { return suite.drift == drift; }));
}

std::string drift_words(const std::vector<SuiteDrift>& suites) {
  const std::size_t bad = count_of(suites, Drift::kTurnedBad);
  const auto others = static_cast<std::size_t>(std::ranges::count_if(suites, drifts)) - bad;
  return fmt::format("{} of {} suites turned bad, {} changed otherwise", bad, suites.size(),
                     others);
}

void add_drift(const std::vector<SuiteDrift>& suites, const std::string& file, Document& d) {
  Value changed = Value::array(), all = Value::array();
  for (const SuiteDrift& suite : suites) {
    const std::string_view drift = kDriftNames[static_cast<std::size_t>(suite.drift)];
    Value one = {{"name", suite.name}, {"drift", drift}};
    if (suite.before) one["before"] = suite_json(*suite.before);
    if (suite.after) one["after"] = suite_json(*suite.after);
    all.push_back(std::move(one));
    if (!drifts(suite)) continue;
    const auto error = [&](double SuiteSummary::*value) {
      return before_and_after(suite, [&](const auto& s) { return percent(s.*value); });
    };
    changed.push_back(
        {{"", "suite", suite.name},
         {"", "drift", drift},
         {"", "rows", before_and_after(suite, [](const auto& s) { return grouped(s.rows); })},
         {"", "mean error", error(&SuiteSummary::mean_error)},
         {"", "median error", error(&SuiteSummary::median_error)},
         {"", "p90 error", error(&SuiteSummary::p90_error)},
         {"", "in the interval", before_and_after(suite, coverage_of)}});
  }
  d["baseline"] = {{"file", file},
                   {"verdict", count_of(suites, Drift::kTurnedBad) > 0 ? "fail" : "pass"},
                   {"suites", std::move(all)}};
  d.show("", "Changed since " + file, std::move(changed));
}

}  // namespace rehearse::cli
