// The same cluster with a slower network, as measured steps show it.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::comm {

/// Messages between nodes take `scale` times as long: the links between nodes have that much less
/// rate, more latency, and dearer messages and steps (Reach::step). NCCL's own constants, and the
/// cap of single flows over TCP, stay. The kind of the network stays, too, as stated or assumed.
/// REQUIRES: `scale` above zero.
cluster::Cluster with_slower_network(const cluster::Cluster& cluster, double scale);

}  // namespace rehearse::comm
