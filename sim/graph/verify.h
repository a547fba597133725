// verify: the invariants of graph.h, checked after every construction.
#pragma once

#include "sim/base/result.h"
#include "sim/graph/graph.h"

namespace rehearse::graph {

/// Success, or an error that names the first op or resource that breaks an invariant; for a cycle,
/// the ops on it. Linear in ops and edges.
Status verify(const Graph& graph);

/// Op ids in an order in which every op follows its predecessors. Shorter than the graph exactly
/// when the edges have a cycle.
std::vector<OpId> topological_order(const Graph& graph);

}  // namespace rehearse::graph
