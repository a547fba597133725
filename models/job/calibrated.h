// The calibrated costs of a job's collectives, where a shipped calibration covers the cluster.
//
// It does where all members are on devices of one model that it was measured on or carried over to,
// joined within the node as those were, by links of the catalog (a rate that was given is another
// link), and evenly spread over nodes. A group gets the share of its node's NICs that its members
// are of the node's devices: the other devices have groups of their own.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/comm/scope_of_cluster.h"

namespace rehearse::job {

struct CalibratedCost {
  comm::CollectiveCost cost;
  std::string source;                 ///< "278 rows of NCCL 2.29.2 on h100_sxm5_80"
  std::vector<Algorithm> algorithms;  ///< that its prices are of
  bool cube_mesh = false;             ///< devices are joined as in the hybrid cube mesh
};

class CalibratedCosts {
 public:
  /// REQUIRES: the cluster outlives this object.
  explicit CalibratedCosts(const cluster::Cluster& cluster) : scopes_(cluster) {}

  /// Equal groups get the same object. With an algorithm its price, else that of NCCL's choice.
  /// Fails, saying why, where no calibration covers it. REQUIRES: at least two devices.
  Result<std::shared_ptr<const CalibratedCost>> of(CollectiveKind kind,
                                                   std::span<const DeviceId> devices,
                                                   std::optional<Algorithm> algorithm = {});

 private:
  using Key = std::tuple<CollectiveKind, std::string, std::optional<comm::Fabric>, std::uint32_t,
                         std::uint32_t, std::optional<comm::NetworkKind>, double, double, double,
                         std::optional<Algorithm>>;

  const comm::Scopes scopes_;
  std::map<Key, Result<std::shared_ptr<const CalibratedCost>>> known_;
};

}  // namespace rehearse::job
