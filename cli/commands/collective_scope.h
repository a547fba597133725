// Options for the scope of a collective: a cluster, or a device with numbers of ranks and nodes and
// the network between nodes, which has the usual cluster of the device; and the calibration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/scope_of_cluster.h"
#include "sim/base/result.h"
#include "sim/cluster/cluster.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

struct ScopeRequest {
  std::string cluster;  ///< a file; empty: the next members describe the network
  std::string device;
  std::string calibration;  ///< a file; empty: the calibration of the device
  std::uint32_t ranks = 0;  ///< 0: all devices of the cluster, or 8
  std::uint32_t devices_per_node = 8;
  std::optional<comm::Network> network;
  std::optional<Seconds> small_all_reduce;  ///< measured time of 8 KiB on these ranks
};

struct Scope {
  comm::ClusterScope on;
  /// Covers the scope; else the reason why none does.
  Result<comm::Calibrated> calibrated;
  bool named = false;  ///< the options name or change the calibration, so that no other may answer
  /// Absent for a calibrated device that is not in the catalog.
  std::optional<cluster::Cluster> cluster = {};
  std::vector<DeviceId> devices = {};  ///< of the cluster, one per rank
};

void add_scope_options(CLI::App& command, ScopeRequest& request);

/// Throws CLI::ValidationError if the options do not say what the collective runs on.
void check_scope_options(const ScopeRequest& request);

/// REQUIRES: the options were checked. Fails if a calibration was named that does not cover the scope,
/// and if there is neither a calibration nor a cluster.
Result<Scope> resolve_scope(const ScopeRequest& request);

/// Two lines for people: device and ranks, source of the numbers.
std::string describe(const Scope& scope);

}  // namespace rehearse::cli
