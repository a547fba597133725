// The interval of a simulated step time.
#pragma once

#include "profiler/replay/compare.h"
#include "sim/base/estimate.h"

namespace rehearse::replay {

/// Minimum relative error of a replay without edits. Over the recordings of docs/accuracy.md the
/// 90th percentile is 0.2 % and the worst error 1.46 %.
inline constexpr double kReplayError = 0.01;

/// Relative error of an edited replay per unit of logarithmic change. One pair of recordings
/// is known: ResNet-50 on a V100 with its loader on the main thread and on four workers,
/// where a change of ln(176/123) = 0.36 was predicted 0.04 too large. 0.15 is more than the error of
/// that pair, 0.04 / 0.36 = 0.11.
inline constexpr double kErrorPerChange = 0.15;

/// The largest share of unexplained delays, and of unexplained waits, with which edits of a recording
/// are trusted; 24 of the 30 recordings of docs/accuracy.md have fewer delays (median 1.1 %). A larger
/// share is reported in the first line, and fails with --strict.
inline constexpr double kTrustedResidual = 0.05;

/// The simulated step time of an unedited recording: its 90 % interval comes from the error of its
/// replay and from its shares of unexplained delays and waits, and is at least kReplayError.
Estimate<Seconds> estimate_step(const Comparison& recorded);

/// The additional relative error of programs on ranks, on a network, or next to threads that were not
/// recorded: cores of one machine share caches and memory. In 20 runs of ./quickstart on a virtual
/// machine with two cores, the 90th percentile of the error of the step of two processes was 0.13
/// (median 0.07, worst 0.20); the machine's own speed drifts by as much between two runs.
inline constexpr double kOtherRanksError = 0.13;

/// The step time of an edited replay, simulated as `edited`: the interval widens with the distance
/// from the recording, and by `further_error`.
Estimate<Seconds> estimate_step(const Comparison& recorded, Seconds edited,
                                double further_error = 0);

}  // namespace rehearse::replay
