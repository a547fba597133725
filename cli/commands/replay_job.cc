#include "cli/commands/replay_job.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "cli/config/job_file.h"
#include "cli/output/run_events.h"
#include "models/comm/interference.h"
#include "models/workload/lift_operands.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/attribution.h"
#include "profiler/replay/batch_requests.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/interval.h"
#include "profiler/replay/lower.h"
#include "profiler/trace/problems.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/warning.h"
#include "sim/base/watch.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

/// Kinds of kernels, by workload::lifting::Role; empty if the operator's name says nothing about
/// its role.
constexpr std::string_view kKernelKinds[] = {
    "",      "convolutions", "matrix products", "matrix products", "attention",
    "norms", "softmax",      "table look-ups",  "pooling"};

/// The role of a kernel, from the operator that launched it.
std::string_view kind_of_kernel(const replay::Recording& recording, std::uint32_t row) {
  for (auto op = recording.launcher(row); op; op = recording.parent(*op))
    if (const std::string_view kind = kKernelKinds[static_cast<std::size_t>(
            workload::lifting::role_of(recording.name(recording.host(*op))))];
        !kind.empty())
      return kind;
  return "other kernels";
}

/// Sets the origin of each kernel: "matrix products", "norms", "other kernels", from the operator
/// that launched it.
void name_kernels(const std::vector<replay::Recording>& recordings,
                  replay::RecordedProgram& program) {
  std::map<std::string_view, std::uint32_t> origins;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    program::RankProgram& of = program.programs[rank];
    for (replay::OpIndex i = 0; i < of.ops.size(); ++i) {
      if (of.ops[i].task != program::Task::kCompute) continue;
      const std::string_view kind = kind_of_kernel(recordings[rank], *of.recorded[i].row);
      const auto next = static_cast<std::uint32_t>(program.origins.size());
      const auto [known, fresh] = origins.try_emplace(kind, next);
      if (fresh)
        program.origins.push_back({{.kind = program::PartKind::kCompute,
                                    .part = program.names.intern(kind),
                                    .provenance = Provenance::kRecorded}});
      of.ops[i].origin = known->second;
    }
  }
}

std::uint32_t rank_number(const trace::Rank& rank, std::size_t index) {
  return rank.info.rank.value_or(static_cast<std::uint32_t>(index));
}

/// Keeps the requested ranks; fails on one that the recording does not have.
Status keep_ranks(trace::Trace& trace, const std::vector<std::uint32_t>& wanted) {
  if (wanted.empty()) return {};
  std::vector<trace::Rank> kept;
  std::string present;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i)
    present += fmt::format("{}{}", i ? ", " : "", rank_number(trace.ranks[i], i));
  for (auto asked = wanted.begin(); asked != wanted.end(); ++asked) {
    const std::uint32_t number = *asked;
    if (std::find(wanted.begin(), asked, number) != asked) continue;  // requested twice
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

/// A helper process of a job may have recorded nothing: that is no reason to reject the others.
void leave_out_silent(trace::Trace& trace, const Globals& globals) {
  const auto is_silent = [](const trace::Rank& rank) {
    return rank.host_ops.empty() && rank.gpu_ops.empty();
  };
  if (std::ranges::all_of(trace.ranks, is_silent)) return;
  for (const trace::Rank& rank : trace.ranks)
    if (is_silent(rank)) globals.warn(rank.info.source + ": contains no records, left out");
  std::erase_if(trace.ranks, is_silent);
}

/// Warns of ranks of the job that were not given, if several were.
void tell_missing(const trace::Trace& trace, const Globals& globals) {
  std::uint32_t world = 0;
  for (const trace::Rank& rank : trace.ranks)
    world = std::max(world, rank.info.world_size.value_or(0));
  if (trace.ranks.size() < 2 || trace.ranks.size() >= world) return;
  globals.warn(fmt::format("{} of {} ranks are given; the work of the others is unknown",
                           trace.ranks.size(), world));
}

}  // namespace

Result<InputTrace> load_trace(const ReplayRequest& request, const Globals& globals,
                              bool timings_suffice) {
  for (const std::filesystem::path& path : request.inputs)
    if ((path.extension() == ".yaml" || path.extension() == ".yml") && is_job_file(path))
      return fail_in(path, "is a job file, not a recording",
                     "rehearse simulate and plan read job files");
  InputTrace input;
  input.trace = std::make_unique<trace::Trace>(
      TRY(ingest::read_inputs(request.inputs, {.strict = globals.strict,
                                               .progress = globals.progress_of("reading"),
                                               .timings_suffice = timings_suffice})));
  TRY(keep_ranks(*input.trace, request.ranks));
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
  TRY(check_writable({request.files.perfetto}));
  ReplayJob job{TRY(load_trace(request, globals)), {}};
  replay::RecordedProgram program = TRY(replay::lower(job.recordings, request.lower));
  name_kernels(job.recordings, program);
  if (job.recordings.size() > 1 && program.collectives.matched.empty())
    globals.warn(
        "no collective of one rank matches one of another: the recordings are replayed "
        "independently and averaged; pass recordings of one run");
  {
    const Watch watch(globals.progress_of("replaying"));
    job.recorded = TRY(run_program(job, std::move(program)));
  }
  const program::Occupancy occupied = replay::occupancy(job.recorded.graph, job.recorded.timeline);
  if (occupied.total > Seconds::s(0))
    job.recorded.comparison.unexplained_wait_share = occupied.unexplained_wait / occupied.total;
  if (globals.strict && !distrust_words(job).empty())
    return fail_in(job.recordings.front().rank().info.source, distrust_words(job),
                   fmt::format("at most {:g} % with --strict", replay::kTrustedResidual * 100),
                   "without --strict, replay lists these ops");
  return job;
}

RunView view_of(const ReplayJob& job, const ReplayRun& run) {
  return {[&](TimelineSink& sink) { show_replay(job.recordings, run.graph, run.timeline, sink); },
          run.timeline, replay::find_critical_steps(run.graph, run.timeline).path};
}

Result<Exit> answer_replay(const Globals& globals, const ReplayRequest& request,
                           const ReplayJob& job, const ReplayRun& run, const Document& document) {
  return answer_run(globals, request.files, document, view_of(job, run),
                    [&] { return ReportDetails{.inputs = request.inputs, .suites = {"replay"}}; });
}

namespace {

/// The kernels of each rank, and the collectives that an edit put alongside them.
std::vector<comm::DeviceOps> with_added_collectives(const replay::ReplayGraph& graph) {
  std::vector<comm::DeviceOps> devices;
  const replay::RecordedProgram& program = graph.program;
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    const program::RankProgram& of = program.program(RankId(rank));
    comm::DeviceOps& device = devices.emplace_back();
    for (std::uint32_t i = 0; i < of.ops.size(); ++i) {
      const program::ProgramOp& op = of.ops[i];
      const bool added = of.recorded[i].kind == program::Recorded::Kind::kAdded;
      if (added && op.task == program::Task::kCollective && op.stream < of.streams.size() &&
          of.streams[op.stream].kind == program::Stream::Kind::kDevice)
        device.communication.push_back(graph.lowered.op(rank, i));
      if (op.task == program::Task::kCompute && op.duration > Picoseconds(0) &&
          of.recorded[i].kind == program::Recorded::Kind::kDevice)
        device.compute.push_back(graph.lowered.op(rank, i));
    }
    if (device.communication.empty()) device.compute.clear();
  }
  return devices;
}

Status interfere(replay::ReplayGraph& graph, Bound bound) {
  const std::vector<comm::DeviceOps> devices = with_added_collectives(graph);
  Seconds sum = Seconds::s(0);
  double kernels = 0;
  for (const comm::DeviceOps& device : devices)
    for (const OpId op : device.compute) {
      sum += graph.graph().duration(op).seconds();
      kernels += 1;
    }
  if (kernels == 0) return {};
  const Estimate<double> slowdown = comm::slowdown_by_collectives(sum / kernels);
  graph::GraphBuilder builder(std::move(graph.lowered.graph));
  comm::interfere(builder, devices,
                  bound == Bound::kLow    ? slowdown.low
                  : bound == Bound::kHigh ? slowdown.high
                                          : slowdown.value);
  graph.lowered.graph = TRY(std::move(builder).build());
  return {};
}

}  // namespace

Result<ReplayRun> run_program(const ReplayJob& job, replay::RecordedProgram program, Bound bound) {
  replay::mark_edited(job.recorded.graph.program, program);
  replay::ReplayGraph graph = TRY(replay::to_graph(std::move(program)));
  TRY(interfere(graph, bound));
  graph::Timeline timeline = TRY(engine::run(graph.graph()));
  replay::begin_at_zero(graph, timeline);
  ReplayRun run{std::move(graph), std::move(timeline), {}};
  run.comparison = replay::compare(job.recordings, run.graph, run.timeline);
  return run;
}

Value rank_rows(const ReplayJob& job, const ReplayRun& run, const StepColumns& add) {
  Value ranks = Value::array();
  for (std::size_t r = 0; r < job.recordings.size(); ++r) {
    Value steps = Value::array();
    const std::uint32_t number = rank_number(job.recordings[r].rank(), r);
    for (std::size_t i = 0; i < run.comparison.steps.size(); ++i) {
      const replay::StepComparison& step = run.comparison.steps[i];
      if (step.rank != r) continue;
      Value row = {
          {"rank", "rank", number}, {"name", "step", step.name}, {"partial", step.partial}};
      if (step.host) {
        row.show("measured_s", "measured", bare(step.host->measured), in::kMs);
        row.show("simulated_s", "simulated", bare(step.host->simulated), in::kMs);
      }
      if (step.device)
        row["gpu"] = {{"measured_s", "GPU measured", bare(step.device->measured), in::kMs},
                      {"simulated_s", "GPU simulated", bare(step.device->simulated), in::kMs}};
      if (add)
        add(i, row);
      else if (step.host)
        row.show("", "error", change(step.host->error()));
      if (!add && step.device) row.show("", "GPU error", change(step.device->error()));
      row.show("", "note", step.partial ? "partial" : "");
      steps.push_back(std::move(row));
    }
    ranks.push_back({{"rank", number},
                     {"source", job.recordings[r].rank().info.source},
                     {"steps_from", to_string(run.graph.program.replays[r].step_source)},
                     {"steps", std::move(steps)}});
  }
  return ranks;
}

namespace {

std::pair<std::size_t, std::size_t> whole_and_partial(const ReplayJob& job) {
  std::size_t whole = 0, partial = 0;
  for (const replay::StepComparison& step : job.recorded.comparison.steps)
    ++(step.partial ? partial : whole);
  return {whole, partial};
}

}  // namespace

Attribution attribution_of(const ReplayJob& job, const ReplayRun& run,
                           const Estimate<Seconds>& step) {
  const replay::CriticalSteps critical = replay::find_critical_steps(run.graph, run.timeline);
  program::Interval interval;
  if (step.value > Seconds::s(0)) interval = {step.low / step.value, step.high / step.value};
  const replay::ReplayOps ops(run.graph, run.timeline, interval);
  Attribution of{replay::occupancy(run.graph, run.timeline),
                 program::path_times(run.graph.graph(), critical.path,
                                     std::max<std::size_t>(1, critical.steps)),
                 program::path_parts(critical.path, run.timeline, ops)};
  if (of.path.parts.empty()) return of;
  of.path.ends_on = rank_number(job.recordings[of.path.ends_on].rank(), of.path.ends_on);
  of.path.steps = static_cast<std::uint32_t>(critical.steps);
  return of;
}

std::string distrust_words(const ReplayJob& job) {
  const double late = job.recorded.comparison.residual_share,
               waiting = job.recorded.comparison.unexplained_wait_share;
  std::vector<std::string> words;
  if (late > replay::kTrustedResidual)
    words.push_back(
        fmt::format("{:.0f} % of the step is unexplained delay: do not trust what-ifs on these ops",
                    late * 100));
  if (waiting > replay::kTrustedResidual)
    words.push_back(fmt::format(
        "{:.0f} % of the step is waiting for work that was not recorded: do not trust what-ifs",
        waiting * 100));
  return fmt::format("{}", fmt::join(words, "; "));
}

namespace {

/// The ops that are late without a reason, the longest delays of all ranks first.
Value late_rows(const ReplayJob& job) {
  constexpr std::size_t kLateOps = 20;
  struct Late {
    std::size_t rank;
    const replay::DelayedOp* op;
  };
  std::vector<Late> late;
  for (std::size_t rank = 0; rank < job.recordings.size(); ++rank)
    for (const replay::DelayedOp& op : job.recorded.graph.program.replays[rank].delayed)
      late.push_back({rank, &op});
  std::ranges::stable_sort(late,
                           [](const Late& a, const Late& b) { return a.op->total > b.op->total; });
  if (late.size() > kLateOps) late.resize(kLateOps);
  Value rows = Value::array();
  for (const auto& [rank, op] : late) {
    const replay::Recording& r = job.recordings[rank];
    const bool kept = op->recurring > Nanoseconds(0);
    Value row = {{"rank", "rank", rank_number(r.rank(), rank)},
                 {"op", "op", r.name(r.gpu(op->ops.front()))},
                 {"stream", "stream", r.gpu(op->ops.front()).stream},
                 {"times", "times late", op->times},
                 {"total_s", "total delay", bare(op->total.seconds()), in::kMs}};
    if (kept) row["recurring_s"] = bare(op->recurring.seconds());
    row.show("", "kept in each step", kept ? Value(op->recurring.seconds()) : Value("–"), in::kMs);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void add_errors(const ReplayJob& job, Document& document) {
  const replay::Comparison& c = job.recorded.comparison;
  document["error"] = {{"median", "median error", share(c.median_error)},
                       {"worst", "worst error", change(c.worst_error)}};
  const bool device = std::ranges::any_of(
      job.recordings, [](const replay::Recording& r) { return !r.streams().empty(); });
  document.show("kernel_start_error", device ? "GPU start error" : "", share(c.start_error));
  document.show("residual_share", device ? "unexplained" : "", share(c.residual_share));
  if (Value rows = late_rows(job); !rows.list().empty())
    document.show(
        "delays",
        c.residual_share <= replay::kTrustedResidual ? "" : "Ops with an unexplained delay",
        std::move(rows), {}, first(5));
}

std::string ranks_and_steps(const ReplayJob& job) {
  return fmt::format("{}, {}", counted(job.recordings.size(), "rank"),
                     counted(whole_and_partial(job).first, "whole step"));
}

std::string describe_input(const ReplayJob& job) {
  const std::size_t partial = whole_and_partial(job).second;
  std::string text = ranks_and_steps(job);
  if (partial > 0) text += fmt::format(" and {} partial", partial);
  text +=
      fmt::format(" (from {})", to_string(job.recorded.graph.program.replays.front().step_source));
  if (job.recordings.size() > 1)
    text += fmt::format(", {} collectives matched",
                        job.recorded.graph.program.collectives.matched.size());
  return text + fmt::format("; {} ops", grouped(job.recorded.graph.graph().size()));
}

}  // namespace rehearse::cli
