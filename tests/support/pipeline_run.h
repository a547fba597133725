// How long a pipeline takes and how long its stages stand idle, from the times of their passes: a
// reference to compare schedules and step::order_times with.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/units.h"

namespace rehearse::test {

/// Of one microbatch through one chunk. Where the order has no slots of its own for recomputation
/// or for the gradients of weights, `backward` includes them.
struct PassTimes {
  Seconds forward;
  Seconds backward;
  Seconds backward_weights = Seconds::s(0);
  Seconds recompute = Seconds::s(0);
  /// From the end of a pass here to when the chunk after (or before) may start: runs beside
  /// everything.
  Seconds send_forward = Seconds::s(0);
  Seconds send_backward = Seconds::s(0);
};

struct PipelineRun {
  Seconds makespan;
  std::vector<Seconds> busy;  ///< by stage
  /// Idle share of the stage that is busy longest: makespan / busy − 1.
  double bubble() const;
};

/// Runs the orders, one slot after the other on each stage: the longest path, exactly. Forward of a
/// chunk waits for that of the chunk before, which is the same chunk of the stage before or the
/// previous one of the last stage; backward for the chunk behind. In time proportional to the
/// slots. Nothing where orders wait for each other, or a pass for one that never comes. `times`: by
/// stage and chunk. REQUIRES: microbatches below `microbatches`, as many chunks on all stages.
std::optional<PipelineRun> run_pipeline(std::span<const std::span<const workload::Slot>> orders,
                                        std::span<const std::vector<PassTimes>> times,
                                        std::uint32_t microbatches);

}  // namespace rehearse::test
