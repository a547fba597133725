#include "cli/commands/replay_job.h"

#include <algorithm>
#include <span>

#include <fmt/core.h>

#include "cli/output/perfetto.h"
#include "cli/output/table.h"
#include "cli/output/waterfall.h"
#include "cli/report/report.h"
#include "cli/report/timeline_sheet.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/takes.h"
#include "profiler/trace/remedies.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/warning.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

std::uint32_t rank_number(const trace::Rank& rank, std::size_t index) {
  return rank.info.rank.value_or(static_cast<std::uint32_t>(index));
}

/// Keeps the ranks asked for; fails on one that the recording has not.
Status keep_ranks(trace::Trace& trace, const std::vector<std::uint32_t>& wanted) {
  if (wanted.empty()) return {};
  std::vector<trace::Rank> kept;
  std::string present;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i)
    present += fmt::format("{}{}", i ? ", " : "", rank_number(trace.ranks[i], i));
  for (auto asked = wanted.begin(); asked != wanted.end(); ++asked) {
    const std::uint32_t number = *asked;
    if (std::find(wanted.begin(), asked, number) != asked) continue;  // asked for twice
    bool found = false;
    for (std::size_t i = 0; i < trace.ranks.size() && !found; ++i)
      if (rank_number(trace.ranks[i], i) == number) {
        kept.push_back(std::move(trace.ranks[i]));
        kept.back().info.rank = number;
        trace.ranks.erase(trace.ranks.begin() + static_cast<std::ptrdiff_t>(i));
        found = true;
      }
    if (!found)
      return fail(fmt::format("the recording has no rank {}", number), "one of " + present);
  }
  trace.ranks = std::move(kept);
  return {};
}

/// A helper process of a job may have recorded nothing: it says nothing of the others.
void leave_out_silent(trace::Trace& trace, const Globals& globals) {
  const auto is_silent = [](const trace::Rank& rank) {
    return rank.host_ops.empty() && rank.gpu_ops.empty();
  };
  if (std::all_of(trace.ranks.begin(), trace.ranks.end(), is_silent)) return;
  for (const trace::Rank& rank : trace.ranks)
    if (is_silent(rank)) globals.warn(rank.info.source + ": recorded nothing, and is left out");
  std::erase_if(trace.ranks, is_silent);
}

/// Of several ranks of one job, those that the job has and that were not given.
void tell_missing(const trace::Trace& trace, const Globals& globals) {
  std::uint32_t world = 0;
  for (const trace::Rank& rank : trace.ranks)
    world = std::max(world, rank.info.world_size.value_or(0));
  if (trace.ranks.size() < 2 || trace.ranks.size() >= world) return;
  globals.warn(fmt::format("{} of {} ranks are given: what the others do is not known",
                           trace.ranks.size(), world));
}

}  // namespace

Result<InputTrace> load_trace(const ReplayRequest& request, const Globals& globals,
                              bool timings_suffice) {
  Result<trace::Trace> trace =
      ingest::read_inputs(request.inputs, {.strict = globals.strict,
                                           .progress = globals.progress_of("reading"),
                                           .timings_suffice = timings_suffice});
  if (!trace) return forward(trace);
  InputTrace input;
  input.trace = std::make_unique<trace::Trace>(std::move(*trace));
  if (Status ok = keep_ranks(*input.trace, request.ranks); !ok) return forward(ok);
  leave_out_silent(*input.trace, globals);
  if (request.ranks.empty()) tell_missing(*input.trace, globals);
  for (const trace::Problem& problem : input.trace->problems.list())
    if (trace::info(problem.kind).severity > trace::Severity::kInfo)
      globals.warn(to_string(
          Warning{fmt::format("{} ({} times; first at {}): {}", trace::info(problem.kind).name,
                              problem.count, problem.first, trace::info(problem.kind).meaning),
                  std::string(trace::remedy_of(problem.kind))}));
  for (std::size_t rank = 0; rank < input.trace->ranks.size(); ++rank)
    input.recordings.emplace_back(*input.trace, rank);
  return input;
}

Result<ReplayJob> load_job(const ReplayRequest& request, const Globals& globals) {
  if (Status ok = check_writable({request.perfetto, request.report}); !ok) return forward(ok);
  Result<InputTrace> input = load_trace(request, globals);
  if (!input) return forward(input);
  ReplayJob job{std::move(*input), {}};
  Result<replay::ReplayGraph> graph = replay::lower(job.recordings, request.lower);
  if (!graph) return forward(graph);
  if (job.recordings.size() > 1 && graph->collectives.matched.empty())
    globals.warn(
        "no collective of one rank matches one of another: the recordings are replayed side by "
        "side "
        "and averaged; give the recordings of one run");
  Result<ReplayRun> run = run_graph(job, std::move(*graph));
  if (!run) return forward(run);
  job.recorded = std::move(*run);
  return job;
}

Status draw(const ReplayRequest& request, const ReplayJob& job, const ReplayRun& run) {
  if (request.perfetto.empty()) return {};
  return write_perfetto(request.perfetto, job.recordings, run.graph, run.timeline);
}

Status report_on(const ReplayRequest& request, const ReplayJob& job, const ReplayRun& run,
                 const Json& document) {
  if (request.report.empty()) return {};
  TimelineSheet sheet;
  show_replay(job.recordings, run.graph, run.timeline, sheet);
  const replay::CriticalSteps critical = replay::find_critical_steps(run.graph, run.timeline);
  return write_report(request.report, document,
                      {.inputs = request.inputs,
                       .suites = {"replay"},
                       .timeline = sheet.json(run.timeline, critical.path)});
}

Result<ReplayRun> run_graph(const ReplayJob& job, replay::ReplayGraph graph) {
  Result<graph::Timeline> timeline = engine::run(graph.graph);
  if (!timeline) return forward(timeline);
  replay::begin_at_zero(graph, *timeline);
  ReplayRun run{std::move(graph), std::move(*timeline), {}};
  run.comparison = replay::compare(job.recordings, run.graph, run.timeline);
  return run;
}

Json json_ranks(const ReplayJob& job, const ReplayRun& run) {
  Json ranks = Json::array();
  for (std::size_t r = 0; r < job.recordings.size(); ++r) {
    Json steps = Json::array();
    const std::uint32_t number = rank_number(job.recordings[r].rank(), r);
    for (const replay::StepComparison& step : run.comparison.steps) {
      if (step.rank != r) continue;
      Json entry = {{"rank", number},
                    {"name", step.name},
                    {"partial", step.partial},
                    {"measured_s", step.host.measured.s()},
                    {"simulated_s", step.host.simulated.s()}};
      if (step.device)
        entry["gpu"] = {{"measured_s", step.device->measured.s()},
                        {"simulated_s", step.device->simulated.s()}};
      steps.push_back(std::move(entry));
    }
    ranks.push_back({{"rank", number},
                     {"source", job.recordings[r].rank().info.source},
                     {"steps_from", to_string(run.graph.ranks[r].step_source)},
                     {"steps", std::move(steps)}});
  }
  return ranks;
}

namespace {

/// One that `json` makes of each part.
template <class ToJson>
Json breakdown_of(const replay::Breakdown& b, ToJson json) {
  return {{"total", json(b.total)},
          {"compute", json(b.compute)},
          {"exposed_communication", json(b.exposed_communication)},
          {"memory", json(b.memory)},
          {"input", json(b.input)},
          {"host_bound", json(b.host_bound)},
          {"unexplained_wait", json(b.unexplained_wait)},
          {"profiler", json(b.profiler)},
          {"idle", json(b.idle)}};
}

Estimate<Seconds> part_of(const Estimate<Seconds>& step, Seconds part) {
  if (!(step.value > Seconds::s(0))) return {part, part, part, step.provenance};
  return {part, part * (step.low / step.value), part * (step.high / step.value), step.provenance};
}

}  // namespace

Json json_breakdown(const replay::Breakdown& b) {
  return breakdown_of(b, [](Seconds part) { return json_measured(part); });
}

Json json_breakdown(const replay::Breakdown& b, const Estimate<Seconds>& step) {
  return breakdown_of(b, [&](Seconds part) { return json_predicted(part_of(step, part)); });
}

std::string describe_input(const ReplayJob& job) {
  std::size_t whole = 0, partial = 0;
  for (const replay::StepComparison& step : job.recorded.comparison.steps)
    ++(step.partial ? partial : whole);
  std::string text =
      fmt::format("{}, {}", counted(job.recordings.size(), "rank"), counted(whole, "whole step"));
  if (partial > 0) text += fmt::format(" and {} partial", partial);
  text += fmt::format(" (from {})", to_string(job.recorded.graph.ranks.front().step_source));
  if (job.recordings.size() > 1)
    text += fmt::format(", {} collectives matched", job.recorded.graph.collectives.matched.size());
  return text + fmt::format("; {} ops", grouped(job.recorded.graph.graph.size()));
}

std::string breakdown_text(const replay::Breakdown& b) {
  using graph::Category;
  const WaterfallPart parts[] = {
      {"compute", b.compute, Category::kCompute},
      {"exposed communication", b.exposed_communication, Category::kCommunication},
      {"memory", b.memory, Category::kMemory},
      {"input", b.input, Category::kInput},
      {"host-bound", b.host_bound, Category::kHost},
      {"unexplained wait", b.unexplained_wait, Category::kDelay},
      {"profiler", b.profiler, Category::kProfiler},
      {"idle", b.idle, Category::kDelay}};
  return waterfall_text(parts, b.total);
}

std::string critical_path_text(const replay::CriticalPath& path) {
  Seconds total = Seconds::s(0);
  for (const Seconds time : path.by_category) total += time;
  std::vector<std::size_t> order(path.by_category.size());
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return path.by_category[a] > path.by_category[b];
  });
  std::string text;
  for (const std::size_t c : order) {
    const double share = total > Seconds::s(0) ? path.by_category[c] / total : 0;
    if (share < 0.005) continue;
    std::string top;
    for (const replay::PathShare& s : path.top)
      if (static_cast<std::size_t>(s.category) == c && top.empty()) top = shortened(s.name, 40);
    text += fmt::format("  {:<22} {:>10} {:>5.1f} %  {}\n", graph::kCategoryNames[c],
                        to_string(path.by_category[c]), share * 100, top);
  }
  return text;
}

std::string advice_text(const std::vector<replay::Advice>& advice) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (const replay::Advice& a : std::span(advice).first(std::min(kShown, advice.size())))
    text += fmt::format("  {:>8} {:>10}  {}\n                       {}\n", signed_percent(a.change),
                        to_string(a.step_time, 4), shortened(a.meaning, 58), a.edit);
  return text.empty() ? "  nothing that was tried gains more than 0.1 %\n" : text;
}

std::string rank_name(const InputTrace& input, std::size_t index) {
  return fmt::format("{}", rank_number(input.recordings[index].rank(), index));
}

Table step_table(const ReplayJob& job, const ReplayRun& run) {
  Table table({{"rank"},
               {"step", Align::kLeft},
               {"measured (ms)"},
               {"simulated (ms)"},
               {"error"},
               {"GPU measured (ms)"},
               {"GPU simulated (ms)"},
               {"GPU error"},
               {"note", Align::kLeft}});
  const auto ms = [](Seconds s) { return fmt::format("{:.3f}", s.ms()); };
  for (const replay::StepComparison& step : run.comparison.steps)
    table.add(
        {rank_name(job, step.rank), step.name, ms(step.host.measured), ms(step.host.simulated),
         signed_percent(step.host.error()), step.device ? ms(step.device->measured) : "",
         step.device ? ms(step.device->simulated) : "",
         step.device ? signed_percent(step.device->error()) : "", step.partial ? "partial" : ""});
  return table;
}

}  // namespace rehearse::cli
