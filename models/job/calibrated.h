// The calibrated costs of a job's collectives, where a shipped calibration covers the cluster.
//
// A calibration covers a cluster if all members are on devices of one model that it was measured on
// or carried over to, joined within the node in the same way by links of the catalog (a given rate
// makes it another link), and evenly spread over nodes. A group gets a share of its node's NICs
// equal to its members' share of the node's devices, because the other devices have groups of their
// own.
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
  std::vector<Algorithm> algorithms;  ///< algorithms that its prices apply to
  bool cube_mesh = false;             ///< devices are joined as in the hybrid cube mesh
  bool through_host = false;          ///< groups of a node share the links to its host
};

/// The calibration of the scope's device, if it was measured on devices joined in the same way. Fails
/// with the reason otherwise.
Result<comm::Calibrated> calibration_on(const comm::ClusterScope& scope);

/// The cost by a calibration, of the algorithm and protocol that are given or else of NCCL's choice.
/// Fails with the reason if it does not determine the time.
Result<CalibratedCost> cost_on(const comm::ClusterScope& scope, const comm::Calibrated& calibrated,
                               CollectiveKind kind, const comm::NcclOverrides& overrides = {});

class CalibratedCosts {
 public:
  /// REQUIRES: the cluster outlives this object.
  explicit CalibratedCosts(const cluster::Cluster& cluster) : scopes_(cluster) {}

  /// Equal groups get the same object. It has the price of the given algorithm, else that of NCCL's
  /// choice. Fails with the reason if no calibration covers the group. REQUIRES: at least two
  /// devices.
  Result<std::shared_ptr<const CalibratedCost>> of(CollectiveKind kind,
                                                   std::span<const DeviceId> devices,
                                                   std::optional<Algorithm> algorithm = {});

  const comm::Scopes& scopes() const { return scopes_; }

 private:
  using Key = std::tuple<CollectiveKind, std::string, std::optional<comm::Fabric>, std::uint32_t,
                         std::uint32_t, std::optional<comm::NetworkKind>, double, double, double,
                         double, std::optional<Algorithm>, double>;

  const comm::Scopes scopes_;
  std::map<Key, Result<std::shared_ptr<const CalibratedCost>>> known_;
};

}  // namespace rehearse::job
