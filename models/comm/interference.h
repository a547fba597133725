// Interference: computing is slower while the same device communicates.
//
// A collective's kernel takes multiprocessors and memory bandwidth from concurrent kernels. The
// law is one number: while a collective runs on a device, each compute stream of the device runs
// at 1 ÷ slowdown of its speed. The collective itself is not slowed. Without a
// number there is no slowdown.
//
// Source of a number: Galvatron publishes a measured "overlap coefficient" of 1.1256 for its
// eight-GPU NVLink nodes (type not stated; computing during an all-reduce relative to computing
// alone). One value for one machine: an order of magnitude elsewhere.
#pragma once

#include <span>
#include <vector>

#include "sim/graph/graph.h"

namespace rehearse::comm {

struct DeviceOps {
  std::vector<OpId> compute;        ///< with a duration, or with work in seconds
  std::vector<OpId> communication;  ///< collectives, or members of transfers
};

/// Makes ops of one device interfere. `slowdown` 1 changes nothing. Compute ops become work of as many
/// seconds as they last, on one capacity per server; REQUIRES: slowdown >= 1.
void interfere(graph::GraphBuilder& graph, std::span<const DeviceOps> devices, double slowdown);

}  // namespace rehearse::comm
