// The interval of the step time of a job on an unmeasured cluster.
#pragma once

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::program {
struct Occupancy;
}

namespace rehearse::job {

/// Time of messages on datasheet links, as a factor of the closed forms. NCCL's own
/// model, with similar rates and latencies, is 13 to 50 % off in every band of sizes on A100,
/// B200 and L40S, mostly too fast.
inline constexpr double kFastestNetwork = 0.8, kSlowestNetwork = 1.5;

/// Least share of the roofline that long compute ops reach. Whole training steps reach 30 to 60 %
/// of the peak.
inline constexpr double kLeastOfPeak = 0.3;

/// A time on links whose rates and latencies come from datasheets.
Estimate<Seconds> on_datasheet_links(Seconds time);

/// The step time if kernels are as slow as kLeastOfPeak; `by_roofline` is the share of compute time
/// on the rank that ends last that came from roofline.h. Durations given in the job are taken as
/// they are.
Estimate<Seconds> with_slow_kernels(Estimate<Seconds> step, const program::Occupancy& last,
                                    double by_roofline);

}  // namespace rehearse::job
