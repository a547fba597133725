#include "strategies/step/path_parts.h"

#include <algorithm>

#include "models/job/program_ops.h"

namespace rehearse::step {

StepPath path_of(const Step& step) {
  return {job::path_parts(step.job, step.lowered, step.timeline, step.computing, step.links),
          program::path_times(step.lowered.graph,
                              job::critical_path(step.job, step.lowered, step.timeline))};
}

void add_input(const Step& step, StepPath& path) {
  if (step.occupancy.input == Seconds::s(0)) return;
  program::PathSum input;
  input.add(Picoseconds::from(step.time.value) - path.parts.total(),
            program::PathShare{.kind = program::PartKind::kInput,
                               .part = "input stall",
                               .op = "waiting for samples",
                               .provenance = Provenance::kExtrapolated});
  const std::vector<program::PathPart> stall = input.parts();
  std::vector<program::PathPart>& parts = path.parts.parts;
  const auto after = std::ranges::find_if(
      parts, [](const program::PathPart& part) { return part.kind > program::PartKind::kInput; });
  parts.insert(after, stall.begin(), stall.end());
}

}  // namespace rehearse::step
