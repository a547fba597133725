// SimGrid as a back end: a graph as engine::run takes it, with all work through capacities carried
// by SimGrid, which shares them max-min fair. It is a reference for our own flows, slower by orders
// of magnitude; docs/concepts/simgrid.md has its limits.
//
// Each run has its own process, because SimGrid allows one engine per process, and an
// error in it ends that process, not ours.
#pragma once

#include <span>
#include <vector>

#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::engine {

/// Whether this build has the back end, and its library is present.
bool simgrid_available();

/// Carries 1 MiB between two hosts, alone and with another flow, and compares the times with the
/// closed form. Fails if they differ or the back end is missing. Checks once per process.
Status check_simgrid();

/// Runs the graph as engine::run does with Division::kFair. Fails where check_simgrid() does, where
/// engine::run does, on flows that SimGrid cannot carry, and on more of them at once than it can
/// carry in reasonable time.
Result<graph::Timeline> run_on_simgrid(const graph::Graph& graph);

/// The same for many graphs, `workers` at a time. Consecutive graphs with equal
/// capacities and demands share one platform.
std::vector<Result<graph::Timeline>> run_on_simgrid(std::span<const graph::Graph> graphs,
                                                    unsigned workers);

}  // namespace rehearse::engine
