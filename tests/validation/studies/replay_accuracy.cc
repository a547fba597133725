#include "tests/validation/studies/replay_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "profiler/replay/edit.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using replay::Comparison;
using replay::LowerOptions;
using replay::Recorded;
using replay::RecordedProgram;
using replay::Recording;
using replay::ReplayGraph;

/// A recording in memory, ready to be lowered in several ways.
struct Job {
  std::string name;
  std::unique_ptr<trace::Trace> trace;
  std::vector<Recording> recordings;
};

Result<Job> read_job(const std::vector<fs::path>& files, const fs::path& below) {
  trace::Trace trace = TRY(ingest::read_inputs(files, {}));
  Job job;
  job.name = fs::relative(files.front(), below).string();
  if (files.size() > 1)
    job.name = fmt::format("{} ({} ranks)",
                           fs::relative(files.front().parent_path(), below).string(), files.size());
  job.trace = std::make_unique<trace::Trace>(std::move(trace));
  for (std::size_t r = 0; r < job.trace->ranks.size(); ++r)
    job.recordings.emplace_back(*job.trace, r);
  return job;
}

struct Replayed {
  ReplayGraph graph;
  graph::Timeline timeline;
  Comparison comparison;
};

Result<Replayed> run(const Job& job, RecordedProgram program) {
  ReplayGraph graph = TRY(replay::to_graph(std::move(program)));
  graph::Timeline timeline = TRY(engine::run(graph.graph()));
  Replayed replayed{std::move(graph), std::move(timeline), {}};
  replayed.comparison = replay::compare(job.recordings, replayed.graph, replayed.timeline);
  return replayed;
}

Result<Replayed> replay_job(const Job& job, const LowerOptions& options) {
  RecordedProgram program = TRY(replay::lower(job.recordings, options));
  return run(job, std::move(program));
}

/// The replay with the durations of the ops that `chosen` picks, by rank and record, multiplied.
template <class Chosen>
Result<Replayed> scaled(const Job& job, const Replayed& base, double factor, Chosen chosen) {
  RecordedProgram edited = base.graph.program;
  for (std::size_t rank = 0; rank < edited.programs.size(); ++rank) {
    program::RankProgram& of = edited.programs[rank];
    for (std::size_t i = 0; i < of.ops.size(); ++i)
      if (chosen(rank, of.recorded[i], of.ops[i]))
        of.ops[i].duration = *of.ops[i].duration * factor;
  }
  return run(job, std::move(edited));
}

bool is_host(const Recorded& of) {
  return of.kind == Recorded::Kind::kHost || of.kind == Recorded::Kind::kCall;
}

double ratio(const Replayed& after, const Replayed& before) {
  const Seconds was = before.comparison.step_time.simulated;
  return was > Seconds::s(0) ? after.comparison.step_time.simulated / was : 0;
}

Result<RecordingAccuracy> measure(const Job& job) {
  RecordingAccuracy a;
  a.name = job.name;
  a.ranks = job.recordings.size();
  for (const Recording& r : job.recordings) a.device_ops += r.rank().gpu_ops.size();
  const Recording& first = job.recordings.front();
  for (const trace::Device& d : first.rank().devices)
    if (!first.streams().empty() && d.ordinal == first.streams().front().device) a.device = d.name;

  const Replayed base = TRY(replay_job(job, {.residuals = replay::Residuals::kNone}));
  a.step_source = base.graph.program.replays.front().step_source;
  a.plain = base.comparison;
  for (const replay::StepComparison& step : a.plain.steps)
    if (!step.partial) a.whole_steps.push_back(step);
  const Replayed residuals = TRY(replay_job(job, {.residuals = replay::Residuals::kAll}));
  a.with_residuals = residuals.comparison;

  using program::ProgramOp;
  const auto device = [](std::size_t, const Recorded& of, const ProgramOp&) {
    return of.kind == Recorded::Kind::kDevice || of.kind == Recorded::Kind::kUnexplained ||
           of.kind == Recorded::Kind::kResidual;
  };
  const auto host = [](std::size_t, const Recorded& of, const ProgramOp&) { return is_host(of); };
  const auto collective = [](std::size_t, const Recorded& of, const ProgramOp& op) {
    return of.kind == Recorded::Kind::kDevice && op.task == program::Task::kCollective;
  };
  const Result<Replayed> none = scaled(job, base, 0, device), ten = scaled(job, base, 10, device),
                         slow = scaled(job, base, 2, host);
  if (!none || !ten || !slow) return fail("a perturbed graph does not run");
  a.gpu_times_0 = ratio(*none, base);
  a.gpu_times_10 = ratio(*ten, base);
  a.host_times_2 = ratio(*slow, base);
  bool has_collectives = false;
  for (const replay::RankReplay& rank : base.graph.program.replays)
    has_collectives = has_collectives || !rank.communication.empty();
  if (has_collectives) {
    const Replayed network = TRY(scaled(job, base, 10, collective));
    a.collectives_times_10 = ratio(network, base);
  }
  // No work can make a step shorter, or more than proportionally longer. The step time is a mean of
  // differences of instants, so that initial states that do not scale leave a little room.
  constexpr double kRoom = 0.02;
  const auto limit = [&](bool holds, const char* what) {
    if (!holds && a.broken_limit.empty()) a.broken_limit = what;
  };
  limit(a.gpu_times_0 <= 1 + kRoom, "device x0 makes a step longer");
  limit(a.gpu_times_10 >= 1 - kRoom && a.gpu_times_10 <= 10 + kRoom, "device x10 outside 1 to 10");
  limit(a.host_times_2 >= 1 - kRoom && a.host_times_2 <= 2 + kRoom, "host x2 outside 1 to 2");
  if (a.collectives_times_10)
    limit(*a.collectives_times_10 >= 1 - kRoom && *a.collectives_times_10 <= 10 + kRoom,
          "collectives x10 outside 1 to 10");

  const auto ablate = [&](const char* rule, const LowerOptions& options) {
    if (const Result<Replayed> without = replay_job(job, options))
      a.ablations.push_back(
          {rule, without->comparison.step_time.error(), without->comparison.start_error});
  };
  ablate("stream order", {.stream_order = false});
  ablate("host waits", {.host_waits = false});
  ablate("hand-offs", {.hand_offs = false});
  ablate("forward before backward", {.backward_links = false});
  ablate("stream waits from calls (A)", {.stream_waits_calls = false});
  ablate("stream waits from times (B)", {.stream_waits_timing = false});
  ablate("A and B", {.stream_waits_calls = false, .stream_waits_timing = false});
  if (job.recordings.size() > 1) ablate("collectives across ranks", {.collectives = false});
  return a;
}

std::uint32_t number_of(const Recording& r) {
  return r.rank().info.rank.value_or(static_cast<std::uint32_t>(r.rank_index()));
}

/// What rank `slow` being late does to the others, simulated and by the definition of a collective.
Result<Coupling> couple(const Job& job, const Replayed& base, std::size_t slow) {
  const Result<Replayed> late =
      scaled(job, base, 2, [&](std::size_t rank, const Recorded& of, const program::ProgramOp&) {
        return rank == slow && is_host(of);
      });
  if (!late) return forward(late);
  Coupling c;
  c.name = job.name;
  c.rank = number_of(job.recordings[slow]);
  // By definition a member's collective ends when the last has arrived, plus its transfer.
  double delay = 0, implied = 0, own = 0;
  std::size_t others = 0;
  const auto arrival = [&](const Replayed& r, const replay::MatchedCollective::Member& m) {
    const replay::OpIndex op = r.graph.program.replays[m.rank].device_first[m.op];
    return r.timeline[r.graph.start_of(m.rank, op)].start.seconds().us();
  };
  for (const replay::MatchedCollective& collective : base.graph.program.collectives.matched) {
    double before = 0, after = 0;
    for (const auto& m : collective.members) {
      before = std::max(before, arrival(base, m));
      after = std::max(after, arrival(*late, m));
    }
    for (const auto& m : collective.members) {
      const OpId last =
          base.graph.lowered.op(m.rank, base.graph.program.replays[m.rank].device_last[m.op]);
      if (m.rank == slow) {
        own = arrival(*late, m) - arrival(base, m);
        continue;
      }
      delay += (late->timeline[last].end - base.timeline[last].end).seconds().us();
      implied += after - before;
      ++others;
    }
  }
  c.own_lateness_us = own;
  if (others > 0) {
    c.others_delay_us = delay / static_cast<double>(others);
    c.others_implied_us = implied / static_cast<double>(others);
  }
  return c;
}

Status measure_ranks(const Job& job, ReplayAccuracy& accuracy) {
  const Replayed base = TRY(replay_job(job, {}));
  for (std::size_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Coupling coupling = TRY(couple(job, base, rank));
    accuracy.couplings.push_back(coupling);
    const Replayed hidden = TRY(replay_job(job, {.hidden_rank = rank}));
    double error = 0;
    for (const replay::StepComparison& step : hidden.comparison.steps)
      if (step.rank == rank && !step.partial) error = step.period().error();
    accuracy.hidden.push_back({job.name, number_of(job.recordings[rank]), error});
  }
  return {};
}

/// Pairs of recordings of one job in two set-ups: an edit of the first predicts the second.
struct KnownPair {
  std::string_view from, to;
  std::string_view edit;  ///< of --input-pipeline
};
constexpr KnownPair kPairs[] = {
    {"*resnet50_num_workers_0*", "*resnet50_num_workers_4*", "workers=4"},
};

Result<PairPrediction> predict_pair(const Job& from, const Job& to, std::string_view edit) {
  PairPrediction p{.from = from.name, .to = to.name, .edit = std::string(edit)};
  const Replayed base = TRY(replay_job(from, {}));
  RecordedProgram edited = TRY(replay::overlap_input(from.recordings, base.graph.program,
                                                     *replay::parse_input_pipeline(edit)));
  const Replayed predicted = TRY(run(from, std::move(edited)));
  p.predicted = predicted.comparison.step_time.simulated;

  const Replayed measured = TRY(replay_job(to, {}));
  std::vector<double> steps;
  for (const replay::StepComparison& step : measured.comparison.steps)
    if (!step.partial) steps.push_back(step.period().measured.s());
  if (steps.empty()) return fail("no whole step to compare with");
  std::sort(steps.begin(), steps.end());
  const double median = steps[steps.size() / 2];
  double sum = 0;
  std::size_t kept = 0;
  for (const double s : steps)
    if (std::abs(s / median - 1) <= 0.25) {
      sum += s;
      ++kept;
    }
  p.measured_median = Seconds::s(median);
  p.measured_mean = Seconds::s(sum / static_cast<double>(kept));
  p.outliers = steps.size() - kept;
  return p;
}

/// Recordings with times of their own, one file each.
bool is_timed_recording(const fs::path& path) {
  const auto kind = ingest::detect_input(path);
  return kind && (*kind == ingest::InputKind::kKineto || *kind == ingest::InputKind::kNsys);
}

}  // namespace

Result<ReplayAccuracy> measure_replay_accuracy(const fs::path& data, const Progress& progress) {
  std::error_code error;
  if (!fs::is_directory(data, error))
    return fail(Diagnostic{.file = data.string(), .problem = "is not a folder of recordings"});
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(data))
    if (entry.is_regular_file() && is_timed_recording(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());

  ReplayAccuracy accuracy;
  std::vector<Job> jobs;
  std::map<fs::path, std::vector<std::size_t>> by_folder;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (progress && !progress(static_cast<double>(i) / static_cast<double>(files.size())))
      return fail("stopped");
    const std::string name = fs::relative(files[i], data).string();
    Result<Job> job = read_job({files[i]}, data);
    if (!job) {
      accuracy.unreadable.emplace_back(name, to_string(job.error()));
      continue;
    }
    std::size_t device_ops = 0;
    for (const Recording& r : job->recordings) device_ops += r.rank().gpu_ops.size();
    if (device_ops == 0) {
      accuracy.without_device_work.push_back(name);
      continue;
    }
    Result<RecordingAccuracy> measured = measure(*job);
    if (!measured) {
      accuracy.unreadable.emplace_back(name, to_string(measured.error()));
      continue;
    }
    accuracy.recordings.push_back(std::move(*measured));
    by_folder[files[i].parent_path()].push_back(jobs.size());
    jobs.push_back(std::move(*job));
  }
  if (jobs.empty())
    return fail(
        Diagnostic{.file = data.string(), .problem = "contains no recording with device work"});

  for (const auto& [folder, members] : by_folder) {
    std::set<std::uint32_t> ranks;
    std::set<std::optional<std::uint32_t>> worlds;
    std::vector<fs::path> paths;
    for (const std::size_t j : members) {
      const trace::RankInfo& info = jobs[j].trace->ranks.front().info;
      if (info.rank && info.world_size.value_or(1) > 1) ranks.insert(*info.rank);
      worlds.insert(info.world_size);
      paths.push_back(data / jobs[j].name);
    }
    if (members.size() < 2 || ranks.size() != members.size() || worlds.size() != 1) continue;
    const Job joint = TRY(read_job(paths, data));
    RecordingAccuracy measured = TRY(measure(joint));
    accuracy.recordings.push_back(std::move(measured));
    TRY(measure_ranks(joint, accuracy));
  }
  for (const KnownPair& pair : kPairs)
    for (const Job& from : jobs)
      for (const Job& to : jobs)
        if (matches_wildcard(pair.from, from.name) && matches_wildcard(pair.to, to.name)) {
          PairPrediction prediction = TRY(predict_pair(from, to, pair.edit));
          accuracy.pairs.push_back(std::move(prediction));
        }
  return accuracy;
}

}  // namespace rehearse::cli
