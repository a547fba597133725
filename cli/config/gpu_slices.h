// The MIG profiles of a GPU as slices of a fleet, and the relative speed of jobs on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/sharing/slice_rate.h"
#include "sim/base/result.h"
#include "sim/cluster/catalog.h"
#include "sim/fleet/fleet.h"

namespace rehearse::cli {

struct GpuSlices {
  cluster::MigDevice device;
  std::uint32_t positions;
  std::vector<fleet::SliceKind> kinds = {};  ///< the smallest first
  std::vector<std::uint32_t> profiles = {};  ///< of each kind, in `device`

  sharing::SliceRatio ratio(std::size_t kind) const {
    return sharing::ratio_of(device, profiles[kind]);
  }
  /// The relative speed of a job on each kind of slice, from `rate_on`.
  template <class RateOn>
  std::map<std::string, Estimate<double>> rates(const RateOn& rate_on) const {
    std::map<std::string, Estimate<double>> rates;
    for (std::size_t k = 0; k < kinds.size(); ++k) rates.emplace(kinds[k].name, rate_on(k));
    return rates;
  }
};

/// Leaves out profiles with media extensions, which are no larger, and the profile of the whole
/// GPU. If nothing is known of a job, its speed on a slice is the slice's share of the compute
/// slices. Fails if the catalog has no profiles.
Result<GpuSlices> slices_of(const cluster::Gpu& gpu);

}  // namespace rehearse::cli
