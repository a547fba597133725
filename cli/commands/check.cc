// rehearse check: is a job still as fast as it was?
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "cli/check/gate.h"
#include "cli/check/gate_output.h"
#include "cli/check/history.h"
#include "cli/check/predictions.h"
#include "cli/check/run_store.h"
#include "cli/check/step_picture.h"
#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/commands/replay_job.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using compare::Run, compare::Verdict;
using Paths = std::vector<std::filesystem::path>;

struct CheckOptions {
  Paths baseline, candidate, history;
  std::filesystem::path predictions;  ///< a folder instead of runs
  std::vector<std::uint32_t> ranks;
  std::optional<double> max_slowdown;  ///< absent: the default
  std::filesystem::path budget, junit, sarif, perfetto;
  std::string name;  ///< of the candidate in the store; empty: where it was read from
  GatePlace place;
  bool annotations = false, accept = false;
};

constexpr double kMaxSlowdown = 0.03;

/// Reads a run, with its typical step if one is requested.
Result<Run> load_run(const Paths& inputs, const CheckOptions& options, const Globals& globals,
                     std::optional<StepPicture>* picture = nullptr) {
  const ReplayRequest request{.inputs = inputs, .ranks = options.ranks};
  const InputTrace input = TRY(load_trace(request, globals));
  // Reports name an existing file: the first, if there are several.
  Result<Run> run = compare::measure_run(input.recordings, inputs.front().string(),
                                         compare::lacks_records(*input.trace));
  if (run && picture && !options.perfetto.empty()) *picture = typical_step(input.recordings, *run);
  return run;
}

/// The limit of the step, unless the budget has one, and the limits of the budget.
Result<std::vector<Limit>> limits_of(const CheckOptions& options) {
  std::vector<Limit> limits;
  if (!options.budget.empty()) limits = TRY(read_budget(options.budget));
  const bool has_step = std::ranges::any_of(limits, [](const Limit& limit) {
    return limit.of == Limit::Of::kQuantity && limit.name == "step_time";
  });
  if (has_step && options.max_slowdown)
    return fail(Diagnostic{.file = options.budget.string(),
                           .key = "step_time",
                           .problem = "is limited both here and by --max-slowdown",
                           .expected = "one of the two"});
  if (!has_step)
    limits.insert(limits.begin(),
                  {.name = "step_time", .rise = options.max_slowdown.value_or(kMaxSlowdown)});
  return limits;
}

/// The rise of the step time by which a history is judged.
double rise_of(const std::vector<Limit>& limits) {
  for (const Limit& limit : limits)
    if (limit.name == "step_time" && limit.rise) return *limit.rise;
  return kMaxSlowdown;
}

/// Writes the result and the reports. An inconclusive verdict is not a failure, unless requested.
Result<Exit> finish(const CheckOptions& options, const Globals& globals, const Document& document,
                    const CheckFindings& findings) {
  TRY(write_document(globals, document));
  for (const auto& [path, text] :
       {std::pair(&options.junit, &junit_xml), {&options.sarif, &sarif_json}})
    if (!path->empty()) TRY(write_file(*path, text(findings)));
  const char* ci = std::getenv("GITHUB_ACTIONS");
  if (options.annotations || (ci && std::string_view(ci) == "true"))
    std::fputs(github_annotations(findings).c_str(), stderr);
  if (findings.verdict == Verdict::kFail) return Exit::kFailed;
  if (findings.verdict != Verdict::kInconclusive) return Exit::kSuccess;
  if (globals.strict) return Exit::kFailed;
  globals.warn("inconclusive: neither a slowdown nor its absence was shown");
  return Exit::kSuccess;
}

Result<Exit> run_predictions(const CheckOptions& options, const Globals& globals) {
  const std::filesystem::path baseline =
      options.baseline.empty() ? std::filesystem::path() : options.baseline.front();
  const PredictionGuard guard = TRY(guard_predictions(options.predictions, baseline, globals));
  const CheckFindings& findings = guard.findings;
  Document document{.command = "check",
                    .rows = "predictions",
                    .rows_title = "Recordings",
                    .methods = {Method::kRecordedTimes}};
  document.answer =
      sentence_of(fmt::format("Rehearse check: {}", to_string(findings.verdict)),
                  {fmt::format("{} predicted", counted(guard.recordings.size(), "recording"))});
  document["verdict"] = to_string(findings.verdict);
  document["predictions"] = prediction_rows(guard);
  if (!guard.has_baseline)
    document.line(
        "Nothing to compare with: keep the JSON result of this run and pass it as --baseline");
  return finish(options, globals, document, findings);
}

/// The data with which a candidate is compared, as far as it is known.
struct Background {
  std::optional<Run> baseline = {};
  std::optional<StepPicture> picture = {};  ///< of the baseline
  std::optional<History> history = {};      ///< with the candidate as its newest run
  std::optional<Past> past = {};            ///< of a store
  compare::EffectOptions effect;
};

/// The series, with the candidate as its newest run. The newest run before it is the baseline.
Result<std::vector<HistoryEntry>> load_series(const CheckOptions& options, const Run* candidate,
                                              Background& background, const Globals& globals) {
  std::optional<Run>& last = background.baseline;
  std::vector<HistoryEntry> entries;
  // Each run is compared with the one before, so they must be of one job.
  const auto add = [&](const Run& run) -> Status {
    entries.push_back({.source = run.source, .level = compare::level_of(run.step_time)});
    if (!last) return {};
    TRY(compare::match_runs(*last, run));
    return {};
  };
  for (const std::filesystem::path& path : options.history) {
    Run run = TRY(load_run({path}, options, globals, &background.picture));
    TRY(add(run));
    last = std::move(run);
  }
  if (candidate) TRY(add(*candidate));
  return entries;
}

/// Judges a series of recordings; the noise between runs is estimated from those before the
/// candidate.
Status judge_series(const CheckOptions& options, const Run* candidate, double rise,
                    Background& background, const Globals& globals) {
  std::vector<HistoryEntry> entries = TRY(load_series(options, candidate, background, globals));
  background.history = TRY(judge_history(entries, rise));
  if (!candidate) return {};
  entries.pop_back();
  if (entries.size() < kLeastHistory) return {};
  const History before = TRY(judge_history(entries, rise));
  add_noise_between_runs(before, background.effect);
  return {};
}

/// Judges the runs of a store, followed by the candidate. A store that is too short for a history
/// is still compared with.
Status judge_store(const CheckOptions& options, const Run* candidate, double rise,
                   Background& background) {
  Past past = TRY(read_past(options.history.front(), candidate, rise, background.effect));
  std::vector<HistoryEntry> entries = past.entries;
  if (candidate) {
    background.baseline = past.baseline ? past.baseline : *candidate;
    const std::string& name = options.name.empty() ? candidate->source : options.name;
    entries.push_back({.source = name,
                       .level = compare::level_of(candidate->step_time),
                       .file = candidate->source});
  }
  background.past = std::move(past);
  if (candidate && entries.size() < kLeastHistory) return {};
  background.history = TRY(judge_history(entries, rise));
  return {};
}

/// Adds a candidate that passed to the store. A drift that is only possible does not keep it out,
/// because more runs are needed to decide.
Status accept(const CheckOptions& options, const Run& candidate, const Gate& gate,
              const std::optional<History>& history, double rise, Past& past) {
  past.accepted = false;
  const Verdict verdict = history && history->findings.verdict == Verdict::kFail
                              ? Verdict::kFail
                              : gate.findings.verdict;
  if (verdict != Verdict::kPass) {
    past.why_not = fmt::format("the verdict is {}", to_string(verdict));
  } else if (candidate.incomplete) {
    past.why_not = "it lacks records";
  } else {
    const std::string& name = options.name.empty() ? candidate.source : options.name;
    past.accepted = TRY(add_run(past.store, kept(candidate, name, rise)));
    past.why_not = "the same run was accepted before";
  }
  return {};
}

/// Called before long work.
Status check_outputs(const CheckOptions& options) {
  if (Status ok = check_writable({options.junit, options.sarif, options.perfetto});
      !ok || !options.accept)
    return ok;
  const std::filesystem::path& store = options.history.front();
  std::error_code error;
  if (!std::filesystem::exists(store, error)) return check_writable({store});
  if (std::filesystem::file_size(store, error) > 0 && !is_run_store(store) &&
      !std::filesystem::exists(store.string() + "-journal", error)) {  // killed at its begin
    return fail_in(store, "is not a history", "a new file, or one written by --accept");
  }
  return {};
}

Result<Exit> run(const CheckOptions& options, const Globals& globals) {
  TRY(check_outputs(options));
  if (!options.predictions.empty()) return run_predictions(options, globals);

  std::vector<Limit> limits = TRY(limits_of(options));
  const double rise = rise_of(limits);
  std::optional<Run> candidate;
  std::optional<StepPicture> picture;
  if (!options.candidate.empty())
    candidate = TRY(load_run(options.candidate, options, globals, &picture));
  Background background{.effect = {.seed = globals.seed}};
  if (!options.history.empty()) {
    const Run* newest = candidate ? &*candidate : nullptr;
    std::error_code error;
    const std::filesystem::path& path = options.history.front();
    if (options.history.size() == 1 && !options.accept && !std::filesystem::exists(path, error))
      return fail_in(path, "does not exist", "a store of accepted runs, or recordings",
                     "--accept creates one with the candidate");
    for (const std::filesystem::path& one : options.history)
      if (options.history.size() > 1 && is_run_store(one))
        return fail_in(one, "is a store of accepted runs mixed with other inputs",
                       "--history with only the store, or with only recordings");
    const bool store = options.history.size() == 1 && (options.accept || is_run_store(path));
    TRY(store ? judge_store(options, newest, rise, background)
              : judge_series(options, newest, rise, background, globals));
  }
  std::optional<Past>& past = background.past;
  if (!options.baseline.empty()) {
    background.baseline = TRY(load_run(options.baseline, options, globals, &background.picture));
    background.effect.baseline_runs = 1;
    if (past) past->pooled = 0;
  }
  std::optional<Gate> gate;
  if (candidate) {
    const bool begins = past && !past->baseline && options.baseline.empty();
    gate = TRY(run_gate({.baseline = std::move(*background.baseline),
                         .candidate = *candidate,
                         .limits = std::move(limits),
                         .place = options.place,
                         .effect = background.effect,
                         .begins = begins}));
    for (const Warning& warning : gate->warnings) globals.warn(to_string(warning));
  }
  std::optional<History>& history = background.history;
  CheckFindings findings;
  for (const CheckFindings* some :
       {gate ? &gate->findings : nullptr, history ? &history->findings : nullptr}) {
    if (!some) continue;
    for (const CheckFinding& f : some->judged) findings.add(f);
    findings.notes.insert(findings.notes.end(), some->notes.begin(), some->notes.end());
  }
  if (options.accept) TRY(accept(options, *candidate, *gate, history, rise, *past));
  if (picture && background.picture)
    TRY(write_steps(options.perfetto, *background.picture, *picture));

  Document document{.command = "check", .methods = {Method::kRecordedSteps}};
  document.answer =
      sentence_of(fmt::format("Rehearse check: {}", to_string(findings.verdict)),
                  {gate ? gate_words(*gate) : "", history ? history_words(*history) : ""});
  document["verdict"] = to_string(findings.verdict);
  add_findings(findings, document);
  document["seed"] = globals.seed;
  if (gate) add_gate(*gate, document);
  if (history) add_history(*history, document);
  if (past) {
    document["store"] = past_json(*past);
    for (const std::string& line : past_lines(*past)) document.line(line);
  }
  return finish(options, globals, document, findings);
}

/// Exactly one thing may be requested.
void check_usage(const CLI::App& command, const CheckOptions& options) {
  if (!options.predictions.empty()) {
    if (options.baseline.size() > 1)
      wrong_usage("--predictions: --baseline must be one file that an earlier check wrote");
    for (const char* option :
         {"--candidate", "--history", "--ranks", "--max-slowdown", "--budget", "--instance",
          "--count", "--region", "--steps-per-epoch", "--accept", "--name", "--perfetto"})
      if (command.count(option) > 0)
        wrong_usage("--predictions can be combined only with --baseline FILE and report options");
    return;
  }
  if (options.candidate.empty() && options.history.empty()) throw CLI::RequiredError("--candidate");
  if (!options.candidate.empty() && options.baseline.empty() && options.history.empty())
    throw CLI::RequiredError("--baseline or --history");
  if (options.candidate.empty() && !options.baseline.empty())
    throw CLI::RequiredError("--candidate");
  if (options.candidate.empty() && (!options.budget.empty() || !options.place.instance.empty()))
    wrong_usage("--budget and --instance need --candidate INPUT");
  if (options.accept && (options.candidate.empty() || options.history.size() != 1))
    wrong_usage("--accept needs --history STORE --candidate INPUT");
  if (!options.name.empty() && !options.accept) wrong_usage("--name needs --accept");
  if (!options.perfetto.empty() &&
      (options.candidate.empty() || (options.baseline.empty() && options.history.size() < 2)))
    wrong_usage("--perfetto needs --baseline INPUT --candidate INPUT");
  if (options.place.instance.empty())
    for (const char* option : {"--count", "--region", "--steps-per-epoch"})
      if (command.count(option) > 0)
        wrong_usage("--count, --region and --steps-per-epoch need --instance NAME");
}

void add_runs(CLI::App& command, CheckOptions& options) {
  add_value(command, "--baseline", "INPUT", options.baseline,
            "earlier recording of the job; with --predictions, the JSON of an earlier run");
  add_value(command, "--candidate", "INPUT", options.candidate, "new recording of the job");
  add_value(
      command, "--history", "INPUT", options.history,
      "store of accepted runs; or recordings of the job over time, oldest first, one per run");
  command.add_flag(
      "--accept", options.accept,
      "add a passing candidate to the store of --history, which is created if missing");
  add_value(command, "--name", "TEXT", options.name,
            "name of the run in the store, such as a commit (default: its path)");
  add_value(command, "--predictions", "FOLDER", options.predictions,
            "replay every recording in this folder instead of comparing runs");
  add_value(command, "--ranks", "N,...", options.ranks, "only these ranks (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_limits(CLI::App& command, CheckOptions& options) {
  add_read(command, "--max-slowdown", "SHARE", options.max_slowdown, parse_rise,
           "largest accepted slowdown of a step (default 3%)");
  add_value(command, "--budget", "FILE", options.budget, "further limits, in YAML");
  GatePlace& place = options.place;
  offer(add_value(command, "--instance", "NAME", place.instance, "instance type, to price a step"),
        instance_names);
  add_number(command, "--count", place.count, 1.0, 1e6, "number of instances (default 1)");
  offer(add_value(command, "--region", "NAME", place.region, "region (default: the cheapest)"),
        region_names);
  add_value(command, "--steps-per-epoch", "N", place.steps_per_epoch,
            "steps per epoch, to price an epoch")
      ->check(CLI::Range(1.0, 1e15).description(""));
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Detect slowdowns between two recordings, or in a series of them, for CI");
  add_runs(*command, *options);
  add_limits(*command, *options);
  add_value(*command, "--junit", "FILE", options->junit, "write JUnit XML");
  add_value(*command, "--sarif", "FILE", options->sarif, "write SARIF 2.1.0");
  add_value(*command, "--perfetto", "FILE", options->perfetto,
            "write a typical step of each recording for ui.perfetto.dev");
  command->add_flag("--annotations", options->annotations,
                    "GitHub annotations on stderr (the default if GITHUB_ACTIONS is true)");
  command->footer(
      "Example: rehearse check --baseline main.rehearse --candidate branch.rehearse --max-slowdown "
      "2%\n"
      "Exits with 1 if the verdict is fail; with --strict also if it is inconclusive.");
  run_by(*command, action, options, run,
         [command](const CheckOptions& given) { check_usage(*command, given); });
}

}  // namespace rehearse::cli
