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
  /// The dimensions that involved_dim of a collective refers to, fastest first: those of
  /// ASTRA-sim's network, or else the devices of a node and the nodes. Empty if nodes differ.
  std::vector<std::uint32_t> dimensions;
};

/// Takes a cluster file or an ASTRA-sim network file: one of the two.
Result<ChakraNetwork> load_network(const std::filesystem::path& cluster,
                                   const std::filesystem::path& astra_network);

/// Sets the rules for collectives from the system file, for a network with this number of
/// dimensions. The chunks and phases of a collective are part of the program
/// (profiler/ingest/chakra_job.h).
void set_astra_rules(const ingest::AstraSystem& system, std::size_t dimensions, job::Rules& rules,
                     std::vector<Warning>& warnings);

}  // namespace rehearse::cli
