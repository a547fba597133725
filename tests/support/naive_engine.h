// A second engine, written for readability: it advances from one instant to the next and recomputes
// everything at each. It checks the fast engine on small graphs.
#pragma once

#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::test {

/// Runs graphs with fifo and priority servers, capacities shared fairly or by turns, and transfers
/// (no leases, no coflows, no processes). Instants are whole picoseconds, as in the fast engine.
graph::Timeline naive_run(const graph::Graph& graph);

}  // namespace rehearse::test
