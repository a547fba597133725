// The interval of a simulated step time.
#pragma once

#include "profiler/replay/compare.h"
#include "sim/base/estimate.h"

namespace rehearse::replay {

/// The 90th percentile of the relative error of replays as recorded, over the recordings of
/// docs/accuracy.md (median 0.1 %, worst 1 %).
inline constexpr double kReplayError = 0.01;

/// Relative error of an edited replay per unit of logarithmic change. One pair of recordings
/// is known: ResNet-50 on a V100 with its loader on the main thread and on four workers,
/// where a change of ln(176/123) = 0.36 was predicted 0.04 too large. 0.15 doubles the error of
/// that pair.
inline constexpr double kErrorPerChange = 0.15;

/// The largest share of unexplained delays with which edits of a recording are to be trusted; twice
/// that of the recordings of docs/accuracy.md in the median. A share above it is said first, and
/// fails with --strict.
inline constexpr double kTrustedResidual = 0.05;

/// The simulated step time of an unedited recording: its 90 % interval comes from the error of its
/// replay and from its share of unexplained delays, and is at least kReplayError.
Estimate<Seconds> estimate_step(const Comparison& recorded);

/// The additional relative error of a replay on ranks or a network that were not recorded. In 20
/// runs of ./quickstart on a virtual machine with two cores, the 90th percentile of the error of
/// the step of two processes was 0.13 (median 0.07, worst 0.20); the machine's own speed drifts by
/// as much between two runs.
inline constexpr double kNetworkError = 0.13;

/// The step time of an edited replay, simulated as `edited`: the interval widens with the distance
/// from the recording, and by `further_error`.
Estimate<Seconds> estimate_step(const Comparison& recorded, Seconds edited,
                                double further_error = 0);

}  // namespace rehearse::replay
