// rehearse study: published systems, from short files.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "cli/study/run_study.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string_view verdict_of(const StudyResult& result) {
  return kStudyVerdictNames[static_cast<int>(result.verdict)];
}

/// "3.2", "412 ms", "4.1 GiB"
std::string term_text(double value, std::string_view unit) {
  if (unit == "s") return to_string(Seconds::s(value));
  if (unit == "B") return to_string(Bytes::b(value));
  return significant(value) + (unit.empty() ? "" : fmt::format(" {}", unit));
}

std::string term_text(const Term& term) { return term_text(term.estimate.value, term.unit); }

std::string expected_text(const Expectation& e, const std::string& unit) {
  if (e.is_value()) return term_text(e.low, unit);
  return fmt::format("{} – {}", term_text(e.low, unit), term_text(e.high, unit));
}

std::string tolerance_text(const Expectation& e) {
  return e.tolerance ? fmt::format("{} %", significant(*e.tolerance * 100)) : "none";
}

std::string got_text(const StudyResult& result) {
  const std::string least = term_text(result.least), most = term_text(result.most);
  return least == most ? least : fmt::format("{} – {}", least, most);
}

/// What has to hold for the sweep.
std::string_view claim_of(const Expectation& e) {
  constexpr std::string_view kClaims[] = {"every point lies in it", "the sweep reaches both ends",
                                          "the ends of the sweep are its ends"};
  return e.is_value() ? "every point is it" : kClaims[static_cast<int>(e.comparison)];
}

/// Its own of one study: parameters, then measures, then the step times they come from.
Table point_table(const StudyResult& result) {
  std::vector<Column> columns;
  for (const auto& [name, value] : result.points.front().parameters)
    columns.push_back({name, Align::kLeft});
  for (const Measure& m : result.study.measures) columns.push_back({m.name});
  for (const JobTemplate& job : result.study.jobs) {
    columns.push_back({fmt::format("{} (ms)", job.name)});
    columns.push_back({fmt::format("{} ranks", job.name)});
  }
  columns.push_back({"does not fit", Align::kLeft});
  Table table(columns);
  for (const StudyPoint& point : result.points) {
    std::vector<std::string> row;
    for (const auto& [name, value] : point.parameters) row.push_back(value);
    for (const Term& term : point.measured) row.push_back(term_text(term));
    std::string unfit;
    for (const StudyJob& job : point.jobs) {
      row.push_back(significant(job.step_time.value.ms()));
      row.push_back(fmt::format("{}", job.ranks));
      if (!job.fits) unfit += (unfit.empty() ? "" : ", ") + job.name;
    }
    row.push_back(unfit);
    table.add(std::move(row));
  }
  return table;
}

std::string study_text(const StudyResult& result) {
  const Study& study = result.study;
  const Expectation& e = study.expectation;
  std::string text = fmt::format("{}: {}\n", study.name, study.source);
  if (!study.about.empty()) text += study.about + (study.about.ends_with('\n') ? "" : "\n");
  text += "\n" + point_table(result).text();
  text += fmt::format("\n{} published {}, got {}: {} ({}, tolerance {})\n", e.measure,
                      expected_text(e, result.least.unit), got_text(result), verdict_of(result),
                      claim_of(e), tolerance_text(e));
  for (const std::string& line : study.assumed) text += fmt::format("assumed {}\n", line);
  return text;
}

Json term_json(const Term& term) {
  return json_predicted(term.estimate, term.unit.empty() ? "1" : term.unit);
}

Json study_json(const StudyResult& result) {
  const Study& study = result.study;
  const Expectation& e = study.expectation;
  Json expected = {{"measure", e.measure},
                   {"low", e.low},
                   {"high", e.high},
                   {"unit", result.least.unit.empty() ? "1" : result.least.unit},
                   {"comparison", kComparisonNames[static_cast<int>(e.comparison)]}};
  Json json = {{"name", study.name},
               {"expected", std::move(expected)},
               {"source", study.source},
               {"got", {{"least", term_json(result.least)}, {"most", term_json(result.most)}}},
               {"tolerance", e.tolerance},
               {"verdict", verdict_of(result)},
               {"assumed", study.assumed}};
  json["points"] = Json::array();
  for (const StudyPoint& point : result.points) {
    Json one = Json::object();
    one["parameters"] = Json::array();
    for (const auto& [name, value] : point.parameters)
      one["parameters"].push_back({{"name", name}, {"setting", value}});
    one["measured"] = Json::array();
    for (std::size_t m = 0; m < point.measured.size(); ++m)
      one["measured"].push_back(
          {{"name", study.measures[m].name}, {"got", term_json(point.measured[m])}});
    one["jobs"] = Json::array();
    for (const StudyJob& job : point.jobs)
      one["jobs"].push_back({{"name", job.name},
                             {"step_time", json_predicted(job.step_time)},
                             {"ranks", job.ranks},
                             {"fits", job.fits}});
    json["points"].push_back(std::move(one));
  }
  return json;
}

/// A row per point and measure: studies differ in their parameters.
Table row_table(const std::vector<StudyResult>& results) {
  Table table({{"study", Align::kLeft},
               {"point", Align::kLeft},
               {"measure", Align::kLeft},
               {"got"},
               {"low"},
               {"high"},
               {"unit", Align::kLeft},
               {"expected low"},
               {"expected high"},
               {"verdict of the study", Align::kLeft}});
  for (const StudyResult& result : results)
    for (const StudyPoint& point : result.points)
      for (std::size_t m = 0; m < point.measured.size(); ++m) {
        std::string where;
        for (const auto& [name, value] : point.parameters)
          where += fmt::format("{}{}={}", where.empty() ? "" : " ", name, value);
        const Expectation& e = result.study.expectation;
        const bool meant = m == result.expected;
        const Term& term = point.measured[m];
        table.add({result.study.name, where, result.study.measures[m].name,
                   significant(term.estimate.value, 6), significant(term.estimate.low, 6),
                   significant(term.estimate.high, 6), term.unit,
                   meant ? significant(e.low, 6) : "", meant ? significant(e.high, 6) : "",
                   meant ? std::string(verdict_of(result)) : ""});
      }
  return table;
}

/// All files are read before any is run.
Result<std::vector<StudyResult>> run_all(const std::vector<std::filesystem::path>& files,
                                         const Globals& globals) {
  std::vector<Study> studies;
  for (const std::filesystem::path& file : files) {
    Result<Study> study = load_study(file);
    if (!study) return forward(study);
    studies.push_back(std::move(*study));
  }
  std::vector<StudyResult> results;
  for (Study& study : studies) {
    const Progress progress = globals.progress_of("study " + study.name);
    Result<StudyResult> result = run_study(std::move(study), progress);
    if (!result) return forward(result);
    results.push_back(std::move(*result));
  }
  return results;
}

Result<Exit> run(const std::vector<std::filesystem::path>& files, const Globals& globals) {
  const Result<std::vector<StudyResult>> results = run_all(files, globals);
  if (!results) return forward(results);
  const auto to_text = [&] {
    std::string text;
    for (const StudyResult& result : *results)
      text += (text.empty() ? "" : "\n") + study_text(result);
    return text;
  };
  const auto to_json = [&] {
    Json json = json_root("study");
    for (const StudyResult& result : *results) json["studies"].push_back(study_json(result));
    return json;
  };
  const Formats formats = {
      .text = to_text, .json = to_json, .table = [&] { return row_table(*results); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  const bool missed = std::any_of(results->begin(), results->end(), [](const StudyResult& result) {
    return result.verdict == StudyVerdict::kMissed;
  });
  return missed ? Exit::kFailed : Exit::kSuccess;
}

}  // namespace

void add_study(CLI::App& app, Action& action) {
  auto files = std::make_shared<std::vector<std::filesystem::path>>();
  CLI::App* command = app.add_subcommand(
      "study", "Run published systems as short files; what was published beside what comes out");
  command->add_option("STUDY", *files, "study files: jobs, a sweep, what is measured and expected")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Ends with 1 where a study misses what it expects.\n"
      "Example: rehearse study studies/stanza.yaml");
  command->callback([files, &action] {
    action = [files](const Globals& globals) { return run(*files, globals); };
  });
}

}  // namespace rehearse::cli
