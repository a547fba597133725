// A made-up training iteration of a transformer under tensor and data parallelism, on which
// `simulate` is timed and tested.
#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "sim/program/program.h"

namespace rehearse::bench {

struct Iteration {
  std::uint32_t layers = 48;
  std::uint32_t tensor = 8;  ///< ranks of a node, which share every layer
  std::uint32_t data = 64;   ///< nodes
  double jitter = 0;         ///< durations of a rank differ by up to this share
};

/// Per layer: 7 compute ops and 2 all-reduces forward, 10 and 2 backward, and one all-reduce of its
/// gradients that overlaps with the layers before it; 4 more ops around them. Ranks of a node are
/// the group "tp", those with the same place on their nodes the group "dp".
program::Program make_job(const Iteration& iteration);

/// Nodes of 8 devices on an NVSwitch, each device with a NIC of 400 Gbit/s to a single switch.
cluster::Cluster make_iteration_cluster(const Iteration& iteration);

}  // namespace rehearse::bench
