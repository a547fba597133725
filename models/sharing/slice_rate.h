// The rate of a job on a slice, relative to the whole GPU, from what is known of the job:
//   1. its law (slice_law.h), from a timed sweep;
//   2. a step on the whole GPU, and the host's time in it;
//   3. nothing: its share of the compute slices, with an interval that reaches up to its rate
//      alone, which a job keeps if it does not fill a GPU.
#pragma once

#include "models/sharing/slice_law.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/cluster/partition.h"

namespace rehearse::sharing {

/// The rate at this batch, at most 1.
Estimate<double> rate_by_law(const JobLaw& law, SliceRatio slice, double size);

/// The GPU's part of a step, without the host's, may grow with the batch completely (the value, and
/// the slow end) or not at all (the fast end). REQUIRES: 0 <= host <= step, step above zero.
Estimate<double> rate_by_step(Seconds step, Seconds host, WorkKind kind, bool training,
                              SliceRatio slice, const SliceConstants& constants);

/// From the scarcer of compute and memory slices to 1. Its provenance is datasheet.
Estimate<double> rate_by_share(const cluster::MigDevice& device, std::uint32_t profile);

/// Memory on a slice of a job that ran on the whole GPU. The context (kernels' code and local memory)
/// takes 4.27 MiB per multiprocessor; everything else is the same. Source: jobs of MIGProfiler on
/// A100 (docs/concepts/sharing.md).
struct SliceMemory {
  Estimate<Bytes> used;
  Bytes usable;
  bool fits;  ///< used <= usable; memory that is held for moments is not in `used`
};

/// `used` is the nvidia-smi value on an instance or GPU with that many multiprocessors.
SliceMemory memory_on_slice(const cluster::MigDevice& device, std::uint32_t profile, Bytes used,
                            std::uint32_t multiprocessors);

}  // namespace rehearse::sharing
