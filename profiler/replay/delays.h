// Delays of device ops that no rule explains, such as a CUDA graph that starts long after its
// launch: which of them recur in every step, and how much of the time they cover.
#pragma once

#include <utility>
#include <vector>

#include "profiler/replay/recording.h"
#include "profiler/replay/steps.h"

namespace rehearse::replay {

/// A device op that is late by more than this is late for a reason of its own; less is noise of the
/// fitted constants.
inline constexpr Nanoseconds kLate{6000};

/// One op of the step with its occurrences in all steps: the n-th op of its name on its stream among
/// those that were launched in a step.
struct DelayedOp {
  std::vector<GpuIndex> ops;
  /// The lower median of its delays over the whole steps if that is above kLate and there are at
  /// least two whole steps: it is late in most of them. Otherwise zero.
  Nanoseconds recurring{0};
  Nanoseconds total{0};   ///< sum of its delays
  std::size_t times = 0;  ///< number of delays above kLate
};

/// The ops that are late at least once, by the sum of their delays, largest first. `late` has the
/// delay of each device op by GpuIndex. Ops without a recorded launch are left out: their starts are
/// those of the recording.
std::vector<DelayedOp> find_delayed(const Recording& recording, const Steps& steps,
                                    const std::vector<Nanoseconds>& late);

/// Stretches of time, from their starts to their ends.
using Spans = std::vector<std::pair<Nanoseconds, Nanoseconds>>;
/// The time that they cover together.
Nanoseconds covered_by(Spans spans);

/// The time in which at least one device op of the rank was late.
Nanoseconds time_late(const Recording& recording, const std::vector<Nanoseconds>& late);

}  // namespace rehearse::replay
