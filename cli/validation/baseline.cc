#include "cli/validation/baseline.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

/// Less than what the tables show of an error.
constexpr double kNothing = 5e-5;

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

std::string headline(const std::vector<SuiteDrift>& suites, const std::string& file) {
  const std::size_t bad = count_of(suites, Drift::kTurnedBad);
  const auto others =
      static_cast<std::size_t>(std::count_if(suites.begin(), suites.end(), drifts)) - bad;
  return fmt::format("Against {}: {} of {} suites turned bad, {} changed otherwise.\n", file, bad,
                     suites.size(), others);
}

}  // namespace

bool is_good(const SuiteSummary& suite) {
  return suite.median_error <= kGoodMedian && suite.interval_coverage.value_or(1) >= kGoodCoverage;
}

Result<std::vector<SuiteSummary>> read_baseline(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return forward(text);
  const auto refused = [&](std::string problem) {
    return fail(Diagnostic{.file = path.string(),
                           .problem = std::move(problem),
                           .expected = "the output of 'rehearse validate --format json'"});
  };
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return refused("is not JSON");
  if (!json.is_object() || json.value("command", nlohmann::json()) != "validate" ||
      !json.contains("suites") || !json["suites"].is_array())
    return refused("is not a result of validate");
  std::vector<SuiteSummary> suites;
  for (const nlohmann::json& suite : json["suites"]) {
    SuiteSummary s;
    try {
      s.name = suite.at("name").get<std::string>();
      s.rows = suite.at("rows").get<std::size_t>();
      s.mean_error = suite.at("mean_error").get<double>();
      s.median_error = suite.at("median_error").get<double>();
      s.p90_error = suite.at("p90_error").get<double>();
      s.worst_error = suite.at("worst_error").get<double>();
      if (!suite.at("interval_coverage").is_null())
        s.interval_coverage = suite.at("interval_coverage").get<double>();
    } catch (const nlohmann::json::exception&) {
      return refused(fmt::format("suites[{}] lacks a name, rows or an error", suites.size()));
    }
    suites.push_back(std::move(s));
  }
  return suites;
}

std::vector<SuiteDrift> drift_of(const std::vector<SuiteSummary>& before,
                                 const std::vector<SuiteSummary>& after) {
  const auto find = [](const std::vector<SuiteSummary>& suites, const std::string& name) {
    return std::find_if(suites.begin(), suites.end(),
                        [&](const SuiteSummary& s) { return s.name == name; });
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
  return static_cast<std::size_t>(
      std::count_if(suites.begin(), suites.end(),
                    [drift](const SuiteDrift& suite) { return suite.drift == drift; }));
}

Table drift_table(const std::vector<SuiteDrift>& suites) {
  Table table({{"suite", Align::kLeft},
               {"drift", Align::kLeft},
               {"rows"},
               {"mean error"},
               {"median error"},
               {"p90 error"},
               {"in the interval"}});
  for (const SuiteDrift& suite : suites)
    if (drifts(suite))
      table.add({suite.name, std::string(kDriftNames[static_cast<int>(suite.drift)]),
                 before_and_after(suite, [](const auto& s) { return fmt::format("{}", s.rows); }),
                 before_and_after(suite, [](const auto& s) { return percent(s.mean_error); }),
                 before_and_after(suite, [](const auto& s) { return percent(s.median_error); }),
                 before_and_after(suite, [](const auto& s) { return percent(s.p90_error); }),
                 before_and_after(suite, coverage_of)});
  return table;
}

std::string drift_text(const std::vector<SuiteDrift>& suites, const std::string& file) {
  const Table table = drift_table(suites);
  return headline(suites, file) + (table.empty() ? "" : "\n" + table.text());
}

std::string drift_section(const std::vector<SuiteDrift>& suites, const std::string& file) {
  const Table table = drift_table(suites);
  return headline(suites, file) + (table.empty() ? "" : "\n" + table.markdown());
}

Json drift_json(const std::vector<SuiteDrift>& suites, const std::string& file) {
  Json json = {{"file", file},
               {"verdict", count_of(suites, Drift::kTurnedBad) > 0 ? "fail" : "pass"}};
  json["suites"] = Json::array();
  for (const SuiteDrift& suite : suites) {
    Json one = {{"name", suite.name}, {"drift", kDriftNames[static_cast<int>(suite.drift)]}};
    for (const auto& [when, summed] :
         {std::pair("before", &suite.before), std::pair("after", &suite.after)})
      if (*summed)
        one[when] = {{"rows", (*summed)->rows},
                     {"mean_error", (*summed)->mean_error},
                     {"median_error", (*summed)->median_error},
                     {"p90_error", (*summed)->p90_error},
                     {"interval_coverage", (*summed)->interval_coverage}};
    json["suites"].push_back(std::move(one));
  }
  return json;
}

}  // namespace rehearse::cli
