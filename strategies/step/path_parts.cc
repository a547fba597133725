#include "strategies/step/path_parts.h"

#include <algorithm>

#include "models/job/program_ops.h"

namespace rehearse::step {

program::PathParts path_parts(const Step& step) {
  program::PathParts result =
      job::path_parts(step.job, step.lowered, step.timeline, step.computing, step.links);
  // Waiting for samples is added to the time of the run.
  if (step.occupancy.input > Seconds::s(0)) {
    program::PathSum input;
    input.add(Picoseconds::from(step.time.value) - result.total(),
              program::PathShare{.kind = program::PartKind::kInput,
                                 .part = "input stall",
                                 .op = "waiting for samples",
                                 .provenance = Provenance::kExtrapolated});
    const std::vector<program::PathPart> stall = input.parts();
    const auto after = std::find_if(
        result.parts.begin(), result.parts.end(),
        [](const program::PathPart& part) { return part.kind > program::PartKind::kInput; });
    result.parts.insert(after, stall.begin(), stall.end());
  }
  return result;
}

}  // namespace rehearse::step
