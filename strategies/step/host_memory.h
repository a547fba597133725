// Host memory: what ranks keep off their devices, against what their nodes can hold.
#pragma once

#include <optional>
#include <string>

#include "models/workload/layout.h"
#include "sim/cluster/cluster.h"

namespace rehearse::step {

/// The node that needs the largest share of what it has.
struct HostMemory {
  std::string node;
  workload::Away need;       ///< of all ranks on the node
  cluster::HostStore store;  ///< of the node, as far as it is known
  /// The larger share of memory and drives that is needed; 0 where neither is known.
  double share() const;
  /// "1.20 TiB of 1.13 TiB of memory"; empty if it fits, or if nothing is known.
  std::optional<std::string> too_much() const;
};

/// Nothing if all state is on devices. Saved activations count for as many microbatches as the
/// order of a stage keeps at a time. Buffers for copies, and what the system and the loader take,
/// are not counted. REQUIRES: the cluster has a device for each rank.
std::optional<HostMemory> host_memory(const workload::Layout& layout,
                                      const cluster::Cluster& cluster);

}  // namespace rehearse::step
