// Memory on a slice of a job that ran on the whole GPU, and whether it fits.
//
// The context (kernels' code and local memory) takes 4.27 MiB per multiprocessor; everything else
// is the same. Source: jobs of MIGProfiler on A100 (docs/concepts/sharing.md).
#pragma once

#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/cluster/partition.h"

namespace rehearse::sharing {

struct SliceMemory {
  Estimate<Bytes> used;
  Bytes usable;
  bool fits;  ///< used <= usable; memory that is held for moments is not in `used`
};

/// `used` is the nvidia-smi value on an instance or GPU with that many multiprocessors.
SliceMemory memory_on_slice(const cluster::MigDevice& device, std::uint32_t profile, Bytes used,
                            std::uint32_t multiprocessors);

}  // namespace rehearse::sharing
