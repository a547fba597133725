// The network of a Chakra job: a cluster, or the network and system files of ASTRA-sim.
#pragma once

#include <filesystem>
#include <vector>

#include "models/job/lower.h"
#include "profiler/ingest/astra_system.h"
#include "sim/base/warning.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cli {

struct ChakraNetwork {
  cluster::Cluster cluster;
  /// That involved_dim of a collective speaks of, the fastest first: those of ASTRA-sim's network,
  /// else the devices of a node and the nodes. Empty where nodes are not alike.
  std::vector<std::uint32_t> dimensions;
};

/// One of both files is given.
Result<ChakraNetwork> load_network(const std::filesystem::path& cluster,
                                   const std::filesystem::path& astra_network);

/// Rules for collectives as the system file has them, on a network of so many dimensions. Its parts
/// and phases are in the program (profiler/ingest/astra_phases.h).
void set_astra_rules(const ingest::AstraSystem& system, std::size_t dimensions, job::Rules& rules,
                     std::vector<Warning>& warnings);

}  // namespace rehearse::cli
