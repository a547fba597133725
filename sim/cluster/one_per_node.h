// The same devices, each on its own node. The difference is the cost or gain of sharing
// nodes.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// Every device, in the same order, with a copy of all that its node has but the other devices:
/// hosts, PCIe switches, NICs, and their links, those into the fabric too. The fabric is the same,
/// with more ends. Routes are found anew; given ones are left out. Fails with one line where nodes
/// are joined by links of their own instead of a fabric (a torus of devices), or by nothing.
Result<Cluster> with_one_device_per_node(const Cluster& cluster);

}  // namespace rehearse::cluster
