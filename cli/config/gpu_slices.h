// The MIG profiles of a GPU as slices of a fleet.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/cluster/catalog.h"
#include "sim/fleet/fleet.h"

namespace rehearse::cli {

struct GpuSlices {
  std::uint32_t positions;
  std::vector<fleet::SliceKind> kinds;  ///< the smallest first
};

/// Without profiles of media extensions, which are no larger, and of the whole GPU. A slice is as
/// fast as its share of the compute slices. Fails where the catalog has no profiles.
Result<GpuSlices> slices_of(const cluster::Gpu& gpu);

}  // namespace rehearse::cli
