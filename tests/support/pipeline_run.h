// The time of a pipeline and the idle time of its stages, from the times of their passes: a
// reference for schedules and for step::order_times.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/units.h"

namespace rehearse::test {

/// Times of one microbatch in one chunk. If the order has no separate slots for recomputation or
/// for weight gradients, `backward` includes them.
struct PassTimes {
  Seconds forward;
  Seconds backward;
  Seconds backward_weights = Seconds::s(0);
  Seconds recompute = Seconds::s(0);
  /// From the end of a pass here to the earliest start of the next (or previous) chunk; overlaps
  /// with everything.
  Seconds send_forward = Seconds::s(0);
  Seconds send_backward = Seconds::s(0);
};

struct PipelineRun {
  Seconds makespan;
  std::vector<Seconds> busy;  ///< by stage
  /// Idle share of the busiest stage: makespan / busy − 1.
  double bubble() const;
};

/// Runs the orders, one slot after another on each stage: the exact longest path. Forward of a
/// chunk waits for forward of the chunk before: the same chunk of the stage before, or the previous
/// chunk of the last stage. Backward waits likewise for the chunk after. Takes time proportional to
/// the slots. Nothing if orders wait for each other, or a pass for one that never comes. `times`:
/// by stage and chunk. REQUIRES: microbatches below `microbatches`; the same number of chunks on
/// all stages.
std::optional<PipelineRun> run_pipeline(std::span<const std::span<const workload::Slot>> orders,
                                        std::span<const std::vector<PassTimes>> times,
                                        std::uint32_t microbatches);

}  // namespace rehearse::test
