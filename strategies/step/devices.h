// Devices: the devices of a layout's ranks, and the time of ops on them. Rank r runs on device r
// of the cluster; stages, and ranks of one stage, may use several kinds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/compute/op_cost.h"
#include "models/memory/memory.h"
#include "models/workload/op.h"
#include "sim/base/names.h"
#include "sim/cluster/cluster.h"
#include "strategies/prices.h"
#include "strategies/step/conditions.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// From the measured device to another, without `sustained`: the
/// ratio of the laws' times on both.
struct CarriedOver {
  compute::OpCost from, to;
};

/// The time of ops on a device under conditions. Jobs are priced with it.
class OpPrice {
 public:
  /// Without `cost`, every op runs on the processor of a host.
  /// `nvme_rate`: the share of a rank in that of its node's drives.
  OpPrice(std::optional<compute::OpCost> cost, const Conditions& conditions,
          std::optional<CarriedOver> measured = {}, std::optional<ByteRate> nvme_rate = {},
          std::vector<OpFactor> factors = {})
      : cost_(std::move(cost)),
        conditions_(conditions),
        measured_(std::move(measured)),
        nvme_rate_(nvme_rate),
        factors_(std::move(factors)) {}

  strategies::OpTime timed(const workload::Op& op) const { return {estimate(op), idle(op)}; }
  Seconds operator()(const workload::Op& op) const { return timed(op).total(); }
  /// Busy time. Measured times have their own interval, others that of the conditions; for
  /// convolutions it is not narrower than that of the laws.
  Estimate<Seconds> estimate(const workload::Op& op) const;
  Seconds idle(const workload::Op& op) const;

 private:
  Estimate<Seconds> unchanged(const workload::Op& op) const;

  std::optional<compute::OpCost> cost_;
  Conditions conditions_;
  std::optional<CarriedOver> measured_;
  std::optional<ByteRate> nvme_rate_;
  std::vector<OpFactor> factors_;
};

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

/// Caches the prices of ops, so that each is computed once.
class KnownPrices {
 public:
  explicit KnownPrices(strategies::Price price) : price_(std::move(price)) {}

  const strategies::OpTime& operator()(const workload::Op& op) {
    if (const auto known = known_.find(op); known != known_.end()) return known->second;
    workload::Op own = op;  // the layout that owns its name may be destroyed before the price
    own.name = names_[names_.intern(op.name)];
    return known_.emplace(own, price_.timed(op)).first->second;
  }

 private:
  strategies::Price price_;
  NamePool names_;
  std::unordered_map<workload::Op, strategies::OpTime, workload::OpHash> known_;
};

/// How far the hosts of a stage's ranks are ahead of their devices (docs/concepts/memory.md).
/// kNone where most runs of the regime stall, as hosts then wait at every exchange; kWarmUp on a
/// stage of a pipeline whose blocks take the host longer than the device; otherwise kAll.
/// REQUIRES: the cluster has a device for each rank.
memory::RunAhead run_ahead(const workload::Layout& layout, const workload::Stage& stage,
                           const cluster::Cluster& cluster, const cluster::Gpu& gpu);

}  // namespace rehearse::step
