// Options for the scope of a collective: a cluster, or a device with numbers of ranks and nodes and
// the network between nodes; and the calibration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/collective_cost.h"
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
  std::string device;
  /// Absent if no calibration covers the scope.
  std::optional<comm::Calibrated> calibrated = {};
  std::uint32_t ranks;
  std::uint32_t nodes;
  std::optional<comm::Network> network = {};
  std::optional<cluster::Cluster> cluster = {};
  std::vector<DeviceId> devices = {};  ///< of the cluster, one per rank
  std::vector<std::string> notes = {};
};

void add_scope_options(CLI::App& command, ScopeRequest& request);

/// Throws CLI::ValidationError if the options do not say what the collective runs on.
void check_scope_options(const ScopeRequest& request);

/// REQUIRES: the options were checked. If no calibration covers the scope, fails if
/// `must_be_calibrated` is set or a calibration was named; otherwise returns a scope without
/// calibration and a note that gives the reason.
Result<Scope> resolve_scope(const ScopeRequest& request, bool must_be_calibrated = true);

/// One line for people: device, ranks, source of the numbers.
std::string describe(const Scope& scope);

}  // namespace rehearse::cli
