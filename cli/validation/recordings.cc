// Recordings, replayed as they are.
#include <fmt/core.h>

#include "cli/validation/judge.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/compare.h"
#include "profiler/replay/interval.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {

Status judge_recording(const std::filesystem::path& path, Judgement& into) {
  const Result<trace::Trace> trace = ingest::read_inputs(std::span(&path, 1), {});
  if (!trace) return forward(trace);
  std::vector<replay::Recording> recordings;
  std::size_t device_ops = 0;
  for (std::size_t rank = 0; rank < trace->ranks.size(); ++rank) {
    recordings.emplace_back(*trace, rank);
    device_ops += recordings.back().rank().gpu_ops.size();
  }
  if (device_ops == 0) return fail("no device work, so there is not a step to predict");
  const Result<replay::ReplayGraph> graph = replay::to_graph(recordings);
  if (!graph) return forward(graph);
  const Result<graph::Timeline> timeline = engine::run(graph->graph());
  if (!timeline) return forward(timeline);
  JudgedCase& of = into.case_of("replay", "s");
  const auto add = [&](const replay::StepComparison& step, std::string_view what,
                       const replay::Pair& period) {
    if (!(period.measured > Seconds::s(0))) return;
    const double simulated = period.simulated.s();
    of.rows.push_back({.name = fmt::format("{} rank {} {}, {}", path.filename().string(), step.rank,
                                           step.name, what),
                       .measured = period.measured.s(),
                       .predicted = {simulated, simulated * (1 - replay::kReplayError),
                                     simulated * (1 + replay::kReplayError), Provenance::kRecorded},
                       // The constants of a replay are medians of the recording itself.
                       .use = Use::kFitted});
  };
  for (const replay::StepComparison& step : replay::compare(recordings, *graph, *timeline).steps) {
    if (step.partial) continue;
    add(step, "host", step.host);
    if (step.device) add(step, "device", *step.device);
  }
  return {};
}

}  // namespace rehearse::cli
