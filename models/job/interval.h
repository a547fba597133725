// How far to trust the step time of a job on a cluster that nothing was measured on.
#pragma once

#include "models/job/usage.h"
#include "sim/base/estimate.h"

namespace rehearse::job {

/// Time of collectives on datasheet links, as a factor of what the closed forms give. NCCL's own
/// model, which has such rates and latencies too, is 13 to 50 % off in every band of sizes on A100,
/// B200 and L40S, mostly too fast.
inline constexpr double kFastestNetwork = 0.8, kSlowestNetwork = 1.5;

/// Least share of the roofline that long compute ops reach. Whole training steps reach 30 to 60 %
/// of the peak.
inline constexpr double kLeastOfPeak = 0.3;

/// The step time, between a network and kernels as good and as bad as that. Only what the rank that
/// ends last waits for or computes counts; `by_roofline` is the share of its compute time that came
/// from roofline.h. Durations in the job are taken as they are.
Estimate<Seconds> estimate_step(Seconds step, const Usage& last, double by_roofline);

}  // namespace rehearse::job
