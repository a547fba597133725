// rehearse replay: simulate a recording as it was and say how well that explains it.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/recorded_beside.h"
#include "cli/commands/recorded_slice.h"
#include "cli/commands/replay_job.h"
#include "cli/commands/replay_path.h"
#include "cli/commands/share_options.h"
#include "cli/output/color.h"
#include "cli/output/result.h"
#include "cli/report/answer.h"
#include "cli/report/markdown.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/interval.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

/// Of the changes that help, documents have so many; a screen has the first three.
constexpr std::size_t kChangesFound = 8;

struct ReplayOptions {
  ReplayRequest request;
  std::string slice;  ///< a MIG profile; empty: the GPU as recorded
  ShareRequest sharing;
};

/// The step without the work of the profiler that recorded it, where it recorded that too.
Result<std::optional<Estimate<Seconds>>> without_profiler(const ReplayJob& job) {
  const replay::Selector profiler = *replay::parse_selector("profiler");
  if (replay::select(job.recordings, job.recorded.graph, profiler).empty()) return std::nullopt;
  Result<replay::ReplayGraph> graph = replay::remove(job.recordings, job.recorded.graph, profiler);
  if (!graph) return forward(graph);
  const Result<ReplayRun> run = run_graph(job, std::move(*graph));
  if (!run) return forward(run);
  return replay::estimate_step(job.recorded.comparison, run->comparison.step_time.simulated);
}

/// What is shown beside the replay itself.
struct Findings {
  std::vector<replay::Advice> advice;
  std::optional<Estimate<Seconds>> without_profiler;
  std::optional<SlicedRun> sliced;  ///< then `advice` is for the slice
};

/// What is shown: the recording's own replay, or that on a slice.
const ReplayRun& shown(const ReplayJob& job, const Findings& findings) {
  return findings.sliced ? findings.sliced->run : job.recorded;
}

Estimate<Seconds> step_of(const ReplayJob& job, const Findings& findings) {
  const replay::Comparison& c = job.recorded.comparison;
  if (!findings.sliced) return replay::estimate_step(c);
  const Seconds on_slice = findings.sliced->run.comparison.step_time.simulated;
  return findings.sliced->widened(replay::estimate_step(c, on_slice));
}

Json to_json(const ReplayJob& job, const Findings& findings) {
  const replay::Comparison& c = job.recorded.comparison;
  const Estimate<Seconds> step = step_of(job, findings);
  const ReplayRun& run = shown(job, findings);
  Json json = json_root("replay");
  json["ranks"] = json_ranks(job, run);
  json["step_time"] = {{"measured", json_measured(c.step_time.measured)},
                       {"simulated", json_predicted(step)}};
  if (findings.sliced) {
    json["slice"] = findings.sliced->name;
    json["slice_memory"] = {{"value", findings.sliced->memory.b()}, {"unit", "B"}};
  }
  // Of the replay as it was recorded, also where a slice is asked for.
  json["error"] = {{"median", c.median_error}, {"worst", c.worst_error}};
  json["kernel_start_error"] = c.start_error;
  json["residual_share"] = c.residual_share;
  json["matched_collectives"] = job.recorded.graph.collectives.matched.size();
  json["unmatched_collectives"] = job.recorded.graph.collectives.unmatched;
  json["breakdown"] = json_breakdown(replay::occupancy(run.graph, run.timeline), step);
  json["critical_path"] = json_critical_path(path_times(run), step);
  const program::PathParts path = path_parts(job, run, step);
  json["path"] = json_path(path);
  json["path_parts"] = json_path_parts(path);
  json["step_from"] = json_provenance(path.shares_by_provenance());
  json["advice"] = Json::array();
  for (const replay::Advice& a : findings.advice)
    json["advice"].push_back({{"edit", a.edit},
                              {"meaning", a.meaning},
                              {"step_time", json_predicted(replay::estimate_step(c, a.step_time))},
                              {"change", a.change}});
  if (findings.without_profiler)
    json["step_time_without_profiler"] = json_predicted(*findings.without_profiler);
  json["problems"] = json_problems(job.trace->problems);
  return json;
}

bool has_device_work(const ReplayJob& job) {
  return std::any_of(job.recordings.begin(), job.recordings.end(),
                     [](const replay::Recording& r) { return !r.streams().empty(); });
}

std::string to_text(const ReplayJob& job, const Findings& findings) {
  const replay::Comparison& c = job.recorded.comparison;
  const Estimate<Seconds> step = replay::estimate_step(c);
  const ReplayRun& run = shown(job, findings);
  std::string text = painted(answer_of(to_json(job, findings)), Paint::kStrong) + "\n" +
                     describe_input(job) + "\n\n";
  text += fmt::format("step time   measured {}   simulated {} ({} – {})   error {}\n",
                      to_string(c.step_time.measured, 4), to_string(step.value, 4),
                      to_string(step.low, 4), to_string(step.high, 4),
                      signed_percent(c.step_time.error()));
  text +=
      fmt::format("            over whole steps, both periods: median error {:.2f} %, worst {}\n",
                  c.median_error * 100, signed_percent(c.worst_error));
  if (has_device_work(job))
    text += fmt::format(
        "            device ops start {:.2f} % of a step off (median); {:.2f} % of the time "
        "unexplained\n",
        c.start_error * 100, c.residual_share * 100);
  if (const auto& step_alone = findings.without_profiler)
    text += fmt::format("            without the profiler's own work {} ({} – {})\n",
                        to_string(step_alone->value, 4), to_string(step_alone->low, 4),
                        to_string(step_alone->high, 4));
  if (findings.sliced) {
    const Estimate<Seconds> there = step_of(job, findings);
    text += fmt::format("            on {} {} ({} – {}); below, all that is simulated is there\n",
                        findings.sliced->name, to_string(there.value, 4), to_string(there.low, 4),
                        to_string(there.high, 4));
    text +=
        fmt::format("            {} of memory there; a recording does not say how much it holds\n",
                    to_string(findings.sliced->memory));
  }
  text += "\nRank occupancy in an average step\n" +
          breakdown_text(replay::occupancy(run.graph, run.timeline));
  text += "\nCritical path of an average step, with the longest op of each part\n" +
          path_parts_text(path_parts(job, run, step));
  text += "\nWhat would help most (each change alone, simulated)\n" + advice_text(findings.advice);
  text += "\n" + step_table(job, run).text(60, kStepsShown);
  return text;
}

Result<Exit> run(const ReplayOptions& options, const Globals& globals) {
  const Result<ReplayJob> job = load_job(options.request, globals);
  if (!job) return forward(job);
  if (options.sharing.asked()) {
    const RecordedTenant own{*job, job->recorded, replay::estimate_step(job->recorded.comparison)};
    if (Status ok = write_beside(own, options.request, options.sharing, "replay", globals); !ok)
      return forward(ok);
    return Exit::kSuccess;
  }
  Findings findings;
  if (!options.slice.empty()) {
    Result<SlicedRun> sliced = run_on_slice(*job, job->recorded.graph, options.slice);
    if (!sliced) return forward(sliced);
    findings.sliced = std::move(*sliced);
  }
  const ReplayRun& run = shown(*job, findings);
  if (Status ok = draw(options.request, *job, run); !ok) return forward(ok);
  if (globals.format != Format::kCsv || !options.request.report.empty()) {
    findings.advice = replay::find_advice(
        job->recordings, run.graph, run.timeline,
        [](const graph::Graph& graph) { return engine::run(graph); }, kChangesFound,
        globals.thread_count());
    Result<std::optional<Estimate<Seconds>>> without = without_profiler(*job);
    if (!without) return forward(without);
    findings.without_profiler = *without;
  }
  if (!options.request.report.empty())
    if (Status ok = report_on(options.request, *job, run, to_json(*job, findings)); !ok)
      return forward(ok);
  const Formats formats = {
      .text = [&] { return to_text(*job, findings); },
      .json = [&] { return to_json(*job, findings); },
      .table = [&] { return step_table(*job, run); },
      .markdown =
          [&] { return markdown_of(to_json(*job, findings), step_table(*job, run), "Steps"); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Simulate a recording as it was; measured beside simulated, and what would help");
  add_replay_options(*command, options->request);
  CLI::Option* slice =
      command
          ->add_option("--slice", options->slice,
                       "each recorded rank on an instance of this MIG profile, such as 2g.20gb")
          ->type_name("PROFILE");
  add_share_options(*command, options->sharing, "recording", slice);
  command->footer("Example: rehearse replay trace.json.gz --report replay.html");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
