// rehearse validate: predict measurements and report the errors of the predictions.
#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/commands/shared_work.h"
#include "cli/validation/baseline.h"
#include "cli/validation/judge.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path baseline, journal;
};

Result<Exit> run(const ValidateOptions& options, const Globals& globals, SharedWork& shared) {
  // Read first, since predictions may take minutes.
  const std::string file = options.baseline.string();
  std::vector<SuiteSummary> before;
  if (!file.empty()) before = TRY(read_baseline(options.baseline));
  const MeasuredFiles files = TRY(measured_files(options.files));
  const work::ExecutionOptions execution =
      TRY(shared.begin("validating", "predictions for " + options.files.front().string(),
                       [&files] { return fingerprint_of(files); }));
  const Judgement judged = TRY(judge(files, execution));
  if (!work::leads()) return Exit::kSuccess;
  if (judged.cases.empty()) {
    const Skipped& why = judged.skipped.empty()
                             ? Skipped{"file", "holds no measurements", options.files.front()}
                             : judged.skipped.front();
    return fail_in(why.first, why.reason);
  }
  for (const Skipped& each : judged.skipped)
    globals.warn(fmt::format("{}: {}, first {}", counted(each.count, each.what) + " skipped",
                             each.reason, each.first));
  const std::vector<SuiteSummary> suites = summarize(judged);
  std::vector<SuiteDrift> drift;
  if (!file.empty()) drift = drift_of(before, suites);
  std::size_t rows = 0;
  for (const SuiteSummary& suite : suites) rows += suite.fitted_rows + suite.blind_rows;
  const auto good = std::ranges::count_if(suites, is_good);
  Document document{
      .command = "validate", .rows = "rows", .rows_title = "Rows", .methods = judged.methods};
  document.answer = sentence_of(
      fmt::format("{} predicted", counted(rows, "measurement")),
      {fmt::format("{} of {} good (median error at most {:g} %, at least {:g} % of rows in their "
                   "intervals)",
                   good, counted(suites.size(), "suite"), kGoodMedian * 100, kGoodCoverage * 100),
       file.empty() ? "" : fmt::format("against {}, {}", file, drift_words(drift))});
  document["suites"] = json_suites(suites);
  if (!file.empty()) add_drift(drift, file, document);
  add_judgement(judged, document);
  return answer_with(globals, document,
                     count_of(drift, Drift::kTurnedBad) > 0 ? Exit::kFailed : Exit::kSuccess);
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App& command = *app.add_subcommand(
      "validate", "Predict measurements, and report the errors of the predictions");
  add_value(command, "FILE", "", options->files,
            "measurements as CSV (jobs, memory, operations, collectives, servers, pairs: "
            "docs/formats/measurements.md), recordings, or folders of these")
      ->required();
  add_value(command, "--baseline", "FILE", options->baseline,
            "JSON result of an earlier run: report what changed, and exit with 1 if a suite "
            "turned from good to bad");
  add_value(command, "--journal", "FILE", options->journal, kJournalHelp);
  command.footer(
      "Example: rehearse validate my_jobs.csv my_collectives.csv recordings/\n"
      "Under mpirun, all ranks share the work.");
  command.callback([options, &action] { action = shared_action(options, run); });
}

}  // namespace rehearse::cli
