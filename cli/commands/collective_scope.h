// Where a collective runs, as the command line says it: which device, how many ranks on how many
// nodes, the network between these, and which calibration.
#pragma once

#include <cstdint>
#include <string>

#include "models/comm/collective_cost.h"
#include "sim/base/result.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

struct ScopeRequest {
  std::string device;
  std::string calibration;  ///< a file; empty: that of the device
  std::uint32_t ranks = 8;
  std::uint32_t devices_per_node = 8;
  std::string network;
  std::string small_all_reduce;  ///< measured time of 8 KiB on these ranks
};

struct Scope {
  comm::Calibrated calibrated;
  std::uint32_t ranks;
  std::uint32_t nodes;
  std::optional<comm::Network> network;
};

void add_scope_options(CLI::App& command, ScopeRequest& request);

Result<Scope> resolve_scope(const ScopeRequest& request);

/// "infiniband,rate=200GB/s,latency=5us": kind, nominal rate of all NICs of a node, latency one
/// way.
Result<comm::Network> parse_node_network(const std::string& text);

/// One line for people: device, ranks, source of the numbers.
std::string describe(const Scope& scope);

}  // namespace rehearse::cli
