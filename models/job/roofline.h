// Durations of the ops of a program, by the roofline of a device and by a price of collectives, and the
// interval of a step that they give.
#pragma once

#include "models/comm/closed_form.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/program/program.h"

namespace rehearse::program {
struct Occupancy;
}

namespace rehearse::job {

struct Device {
  FlopRate peak;
  ByteRate memory;
};

/// An op takes the longer of flops ÷ peak and bytes ÷ memory rate: a lower bound, which real
/// kernels exceed (Williams, Waterman and Patterson, CACM 52, 2009). Sets what has no duration;
/// returns the share of all compute and memory time in the job's programs that was set.
double set_durations(program::Program& job, const Device& device);

/// Whether some compute or memory op has no duration.
bool lacks_durations(const program::Program& job);

/// Sets the duration of every collective of known size; returns their number. Fails if a time is
/// not available.
Result<std::size_t> price(program::Program& program, const comm::CollectiveTime& time_of);

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
