// Devices: the devices of a layout's ranks, and the time of ops on them. Rank r runs on device r
// of the cluster; stages, and ranks of one stage, may use several kinds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/memory/memory.h"
#include "strategies/prices.h"
#include "strategies/step/op_price.h"
#include "strategies/step/step.h"

namespace rehearse::step {

struct DeviceKind {
  std::string name;         ///< in the catalog, or cluster::kCpu
  const cluster::Gpu* gpu;  ///< null for cluster::kCpu
  Conditions conditions;
  OpPrice price;
  std::optional<ByteRate> nvme_rate;  ///< a device's share in the drives of its node
  std::uint32_t ranks = 0;
};

class Devices {
 public:
  /// Fails with one line: more ranks than devices, a device that is not in the catalog, a stage on
  /// processors of hosts (parameter servers may be), measured operations on several kinds of device
  /// without a statement of the kind on which they were measured.
  static Result<Devices> of(
      const workload::Layout& layout, const cluster::Cluster& cluster, const Spec& spec,
      std::span<const compute::Calibration> calibrations = compute::shipped_calibrations());

  const std::vector<DeviceKind>& kinds() const { return kinds_; }

  struct Share {
    std::uint32_t kind;
    std::uint32_t ranks;
  };
  /// The kinds of devices of a stage's ranks, in the order of their first rank.
  std::vector<Share> under(const workload::Stage& stage) const;

  /// Each op is priced once, however often it is requested. REQUIRES: this object outlives the
  /// result; two threads do not use the result at the same time.
  strategies::Prices prices() const;

 private:
  std::vector<DeviceKind> kinds_;
  std::vector<std::uint32_t> kind_of_;  // by rank
};

/// By stage: the memory of a rank on the kind of its devices that it fills most. Fails as
/// Devices::of does for the cluster.
Result<std::vector<memory::StageMemory>> memory_on(const workload::Layout& layout,
                                                   const cluster::Cluster& cluster);

}  // namespace rehearse::step
