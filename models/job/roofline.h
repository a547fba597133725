// Durations of ops that state their work instead of a duration, by the roofline of a device.
#pragma once

#include "sim/base/units.h"
#include "sim/program/program.h"

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

}  // namespace rehearse::job
