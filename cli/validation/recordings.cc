// Recordings, replayed as they are, and with one side of them taking no time.
#include <algorithm>

#include <fmt/core.h>

#include "cli/validation/judge.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/compare.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/interval.h"
#include "profiler/replay/limits.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

using replay::RecordedProgram;

/// How far a replay may be outside a physical limit.
constexpr double kLimitError = 0.05;

/// A recording, or one rank of it, with its replay.
struct Run {
  replay::ReplayGraph graph;
  graph::Timeline timeline;
  replay::Comparison comparison;
};

Result<Run> run_program(const std::vector<replay::Recording>& recordings, RecordedProgram program) {
  replay::ReplayGraph graph = TRY(replay::to_graph(std::move(program)));
  graph::Timeline timeline = TRY(engine::run(graph.graph()));
  Run run{std::move(graph), std::move(timeline), {}};
  run.comparison = replay::compare(recordings, run.graph, run.timeline);
  return run;
}

/// The program with all ops of a target taking no time; as it is if there are none.
RecordedProgram without(const std::vector<replay::Recording>& recordings,
                        const RecordedProgram& program, std::string_view target) {
  Result<RecordedProgram> edited =
      replay::scale(recordings, program, {.what = *replay::parse_selector(target), .factor = 0});
  return std::move(edited).value_or(program);
}

/// Adds rows of the suites "limits": the nearest possible time is what counts as measured.
class LimitRows {
 public:
  explicit LimitRows(Part& into) : into_(into) {}

  void add(const std::string& suite, std::string row, const replay::Limits& limits, Seconds found) {
    const Seconds nearest = std::clamp(found, limits.least, std::max(limits.least, limits.most));
    if (!(nearest > Seconds::s(0))) return;
    into_.rows.push_back(
        {.suite = "limits/" + suite,
         .row = {.name = std::move(row),
                 .measured = nearest.s(),
                 .predicted = {found.s(), found.s() * (1 - kLimitError),
                               found.s() * (1 + kLimitError), Provenance::kRecorded},
                 .use = Use::kFitted}});
  }

 private:
  Part& into_;
};

/// One rank alone without its devices, and without its host. Returns its step time without its
/// collectives.
Result<Seconds> judge_rank(const trace::Trace& whole, std::size_t rank, const std::string& name,
                           LimitRows& rows) {
  trace::Trace trace{.names = whole.names, .ranks = {whole.ranks[rank]}};
  const std::vector<replay::Recording> alone = {replay::Recording(trace, 0)};
  const replay::Recording& r = alone.front();
  const RecordedProgram program = TRY(replay::lower(alone, {}));
  if (!r.threads().empty()) {
    const Run host = TRY(run_program(alone, without(alone, program, "gpu")));
    const std::vector<replay::StepOps>& steps = program.replays.front().steps;
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (!steps[s].step.partial)
        rows.add("host alone", fmt::format("{} {}", name, steps[s].step.name),
                 replay::host_alone(r, steps[s]), host.comparison.steps[s].period().simulated);
  }
  if (!r.streams().empty() && !r.threads().empty()) {
    const Run device = TRY(run_program(alone, without(alone, program, "host")));
    Picoseconds end(0);
    for (const replay::OpIndex op : program.replays.front().device_last)
      end = std::max(end, device.timeline[device.graph.lowered.op(0, op)].end);
    rows.add("devices alone", name,
             replay::devices_alone(r, program.replays.front(), program.programs.front()),
             end.seconds());
  }
  const Run local = TRY(run_program(alone, without(alone, program, "collective")));
  return local.comparison.step_time.simulated;
}

}  // namespace

Result<Part> judge_recording(const std::filesystem::path& path) {
  const trace::Trace trace = TRY(ingest::read_inputs(std::span(&path, 1), {}));
  std::vector<replay::Recording> recordings;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
    recordings.emplace_back(trace, rank);
  RecordedProgram program = TRY(replay::lower(recordings, {}));
  const Run recorded = TRY(run_program(recordings, program));
  const std::string file = path.filename().string();
  Part part;
  const auto add = [&](const replay::StepComparison& step, std::string_view what,
                       const replay::Pair& period) {
    if (!(period.measured > Seconds::s(0))) return;
    const double simulated = period.simulated.s();
    part.rows.push_back(
        {.suite = "replay",
         .row = {.name = fmt::format("{} rank {} {}, {}", file, step.rank, step.name, what),
                 .measured = period.measured.s(),
                 .predicted = {simulated, simulated * (1 - replay::kReplayError),
                               simulated * (1 + replay::kReplayError), Provenance::kRecorded},
                 // The constants of a replay are medians of the recording itself.
                 .use = Use::kFitted}});
  };
  for (const replay::StepComparison& step : recorded.comparison.steps) {
    if (step.partial) continue;
    if (step.host) add(step, "host", *step.host);
    if (step.device) add(step, "device", *step.device);
  }
  LimitRows rows(part);
  replay::Limits together{Seconds::s(0), recorded.comparison.step_time.simulated};
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const Seconds local = TRY(judge_rank(trace, rank, fmt::format("{} rank {}", file, rank), rows));
    together.least = std::max(together.least, local);
  }
  if (program.collectives.matched.empty()) return part;
  const Run joint = TRY(run_program(recordings, without(recordings, program, "collective")));
  rows.add("slowest rank", file, together, joint.comparison.step_time.simulated);
  return part;
}

}  // namespace rehearse::cli
