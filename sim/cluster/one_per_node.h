// The same devices, each on its own node. The difference is the cost or gain of sharing
// nodes.
#pragma once

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// Every device, in the same order, with a copy of everything on its node except the other devices:
/// hosts, PCIe switches, NICs, and their links, including those into the fabric. The fabric is the
/// same, with more endpoints. Routes are recomputed; given routes are left out. Fails with one line
/// if nodes are joined by their own links instead of a fabric (a torus of devices), or by nothing.
Result<Cluster> with_one_device_per_node(const Cluster& cluster);

}  // namespace rehearse::cluster
