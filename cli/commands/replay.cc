// rehearse replay: simulate a recording as recorded, and report how well that explains it.
#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/format.h>

#include "cli/commands/options.h"
#include "cli/commands/recorded_slice.h"
#include "cli/commands/recorded_tenants.h"
#include "cli/commands/replay_job.h"
#include "cli/commands/share_options.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/interval.h"
#include "profiler/replay/slow_ranks.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

/// The number of helpful changes in documents; a screen has the first three.
constexpr std::size_t kChangesFound = 8;

/// The step time without the work of the profiler, if that was recorded.
Result<std::optional<Estimate<Seconds>>> without_profiler(const ReplayJob& job) {
  const replay::Selector profiler = *replay::parse_selector("profiler");
  if (replay::select(job.recordings, job.recorded.graph.program, profiler).empty())
    return std::nullopt;
  replay::RecordedProgram program =
      TRY(replay::remove(job.recordings, job.recorded.graph.program, profiler));
  const ReplayRun run = TRY(run_program(job, std::move(program)));
  return replay::estimate_step(job.recorded.comparison, run.comparison.step_time.simulated);
}

/// The findings in addition to the replay itself.
struct Findings {
  std::vector<replay::Advice> advice;
  replay::Stragglers stragglers = {};
  std::optional<Estimate<Seconds>> without_profiler;
  std::optional<EditedRun> sliced;  ///< then `advice` is for the slice
  std::optional<SliceName> slice = {};
};

/// The run to show: the recording's own replay, or that on a slice.
const ReplayRun& shown(const ReplayJob& job, const Findings& findings) {
  return findings.sliced ? findings.sliced->run : job.recorded;
}

std::uint32_t rank_number(const ReplayJob& job, const replay::SlowRank& slow) {
  return job.recordings[slow.rank].rank().info.rank.value_or(static_cast<std::uint32_t>(slow.rank));
}

/// "ranks 6, 7 (data of stage 3) slow in forward-compute: 1.84 s if all were equally fast".
std::string straggler_words(const ReplayJob& job, const replay::Stragglers& stragglers) {
  constexpr double kWorthSaying = 0.02;  // of the step
  const Seconds step = job.recorded.comparison.step_time.simulated;
  if (stragglers.ranks.empty() || stragglers.step_if_equal > step * (1 - kWorthSaying)) return "";
  std::set<std::uint32_t> numbers;
  for (const replay::SlowRank& slow : stragglers.ranks) numbers.insert(rank_number(job, slow));
  return fmt::format("{} {}{} slow in {}: {} if all were equally fast",
                     numbers.size() == 1 ? "rank" : "ranks", fmt::join(numbers, ", "),
                     stragglers.group.empty() ? "" : fmt::format(" ({})", stragglers.group),
                     stragglers.ranks.front().op, range_words(stragglers.step_if_equal));
}

void add_stragglers(const ReplayJob& job, const replay::Stragglers& stragglers, Document& d) {
  if (stragglers.ranks.empty()) return;
  const replay::Comparison& c = job.recorded.comparison;
  d.show("step_time_if_equal", "all ranks equal",
         replay::estimate_step(c, stragglers.step_if_equal));
  if (!stragglers.group.empty()) d["slow_group"] = stragglers.group;
  Value rows = Value::array();
  for (const replay::SlowRank& slow : stragglers.ranks)
    rows.push_back({{"rank", "rank", rank_number(job, slow)},
                    {"op", "slow in", slow.op},
                    {"ratio", "time relative to others", slow.ratio},
                    {"since", "since", slow.since},
                    {"step_time", replay::estimate_step(c, slow.step_without)},
                    {"", "step if as fast as the others", slow.step_without}});
  d.show("slow_ranks", "Ranks that are slower than the others", std::move(rows), {}, first(8));
}

Document document_of(const ReplayJob& job, const Findings& findings) {
  const replay::Comparison& c = job.recorded.comparison;
  const ReplayRun& run = shown(job, findings);
  const Estimate<Seconds> step =
      findings.sliced ? findings.sliced->step(job) : replay::estimate_step(c);
  const std::optional<SliceName>& slice = findings.slice;
  const Attribution attribution = attribution_of(job, run, step);
  Document d{.command = "replay", .rows = "ranks.steps", .rows_title = "Steps"};
  d.answer = sentence_of(
      fmt::format("Step time {} measured, {}", range_words(c.step_time.measured),
                  range_words(step, slice ? " simulated on " + slice->name : " simulated")),
      {distrust_words(job), straggler_words(job, findings.stragglers),
       fmt::format("median error {:.2f} %", c.median_error * 100),
       largest_part(occupancy_fields(attribution.occupancy))});
  d.line(describe_input(job));
  d["step_time"] = {{"measured", "step time, measured", c.step_time.measured},
                    {"simulated", "step time, simulated", step}};
  d.show("", "error", change(c.step_time.error()));
  if (slice) {
    d.show("slice", "slice", slice->name);
    d.show("slice_memory", "memory of the slice", slice->memory);
  }
  if (findings.without_profiler)
    d.show("step_time_without_profiler", "without profiler", *findings.without_profiler);
  // The findings are about the replay as recorded, even if a slice is requested.
  add_errors(job, d);
  add_attribution(attribution, step, d);
  d["matched_collectives"] = job.recorded.graph.program.collectives.matched.size();
  d["unmatched_collectives"] = job.recorded.graph.program.collectives.unmatched;
  Value advice = Value::array();
  for (const replay::Advice& a : findings.advice)
    advice.push_back({{"change", "change", change(a.change)},
                      {"step_time", replay::estimate_step(c, a.step_time)},
                      {"", "step time", a.step_time},
                      {"meaning", "edit", a.meaning, {}, kProse},
                      {"edit", "option", a.edit}});
  add_stragglers(job, findings.stragglers, d);
  d.show("advice", "What would help most (each change alone, simulated)", std::move(advice), {},
         first(3));
  d.show("ranks", "Steps", rank_rows(job, run), {}, first(kStepsShown));
  d.methods = {Method::kRecordedTimes};
  d.add_problems(job.trace->problems);
  return d;
}

Result<Exit> run(const ReplayRequest& request, const Globals& globals) {
  const ReplayJob job = TRY(load_job(request, globals));
  if (request.sharing.asked())
    return share_recorded({job, job.recorded, replay::estimate_step(job.recorded.comparison)},
                          request, "replay", globals);
  Findings findings;
  if (!request.sharing.slice.empty()) {
    const std::string& profile = request.sharing.slice;
    findings.sliced = TRY(run_edited(job, {on_slice(job, profile)}));
    findings.slice = TRY(name_slice(job, profile));
  }
  const ReplayRun& run = shown(job, findings);
  if (globals.format != Format::kCsv || !globals.report.empty()) {
    findings.advice = replay::find_advice(
        job.recordings, run.graph, run.timeline,
        [](const graph::Graph& graph) { return engine::run(graph); }, kChangesFound,
        globals.thread_count());
    findings.without_profiler = TRY(without_profiler(job));
    findings.stragglers =
        TRY(replay::find_stragglers(job.recordings, job.recorded.graph,
                                    [](const graph::Graph& graph) { return engine::run(graph); }));
  }
  const Document document = document_of(job, findings);
  return answer_replay(globals, request, job, run, document);
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto request = std::make_shared<ReplayRequest>();
  CLI::App* command = app.add_subcommand(
      "replay",
      "Simulate a recording and compare it with the measurement; show changes that would help");
  add_replay_options(*command, *request);
  add_share_options(*command, request->sharing, "recording",
                    "run each recorded rank on an instance of this MIG profile, such as 2g.20gb");
  command->footer("Example: rehearse replay trace.json.gz --report replay.html");
  run_by(*command, action, request, run);
}

}  // namespace rehearse::cli
