// rehearse validate: predict measurements and say how far off the predictions are.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "cli/validation/baseline.h"
#include "cli/validation/judge.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path baseline;
};

Result<Exit> run(const ValidateOptions& options, const Globals& globals) {
  // Read first, since predictions may take minutes.
  const std::string file = options.baseline.string();
  std::vector<SuiteSummary> before;
  if (!file.empty()) {
    Result<std::vector<SuiteSummary>> read = read_baseline(options.baseline);
    if (!read) return forward(read);
    before = std::move(*read);
  }
  const Result<Judgement> judged = judge(options.files, globals.progress_of("validating"));
  if (!judged) return forward(judged);
  if (judged->cases.empty()) {
    const Skipped& why = judged->skipped.empty()
                             ? Skipped{"file", "holds no measurements", options.files.front()}
                             : judged->skipped.front();
    return fail(Diagnostic{.file = why.first, .problem = why.reason});
  }
  for (const Skipped& each : judged->skipped)
    globals.warn(fmt::format("{}: {}, first {}", counted(each.count, each.what) + " skipped",
                             each.reason, each.first));
  const std::vector<SuiteSummary> suites = summarize(*judged);
  std::vector<SuiteDrift> drift;
  if (!file.empty()) drift = drift_of(before, suites);
  const auto to_json = [&] {
    Json json = json_root("validate");
    json["suites"] = json_suites(suites);
    add_rows(*judged, json);
    if (!file.empty()) json["baseline"] = drift_json(drift, file);
    return json;
  };
  const auto to_text = [&] {
    return (file.empty() ? "" : drift_text(drift, file) + "\n") + judgement_text(*judged);
  };
  const auto to_markdown = [&] {
    return "# Validation\n\nErrors are predicted ÷ measured - 1; means, medians and quantiles are "
           "of "
           "their magnitude. Intervals are of 90 %.\n\n" +
           suite_table(suites).markdown() +
           (file.empty() ? "" : "\n" + drift_section(drift, file)) + judgement_markdown(*judged);
  };
  const Formats formats = {.text = to_text,
                           .json = to_json,
                           .table = [&] { return row_table(*judged, false); },
                           .markdown = to_markdown};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return count_of(drift, Drift::kTurnedBad) > 0 ? Exit::kFailed : Exit::kSuccess;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Predict measurements, and report the errors of the predictions");
  command
      ->add_option("FILE", options->files,
                   "measurements as CSV (jobs, operations, collectives, memory, pairs: "
                   "docs/formats/measurements.md), recordings, or folders of these")
      ->type_name("")
      ->required();
  command
      ->add_option("--baseline", options->baseline,
                   "JSON result of an earlier run: report what changed, and exit with 1 if a suite "
                   "turned from good to bad")
      ->type_name("FILE");
  command->footer("Example: rehearse validate my_jobs.csv my_collectives.csv recordings/");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
