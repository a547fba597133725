// SimGrid as a back end: a graph as engine::run takes it, with all work through capacities carried
// by SimGrid, which shares them max-min fair. A referee for our own flows, slower by orders of
// magnitude; docs/concepts/simgrid.md says what it carries, and how large.
//
// Each run has a process of its own: one engine per process is all that SimGrid allows, and what
// goes wrong in it ends that process, not ours.
#pragma once

#include <span>
#include <vector>

#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::engine {

/// This build has the back end, and its library is there.
bool simgrid_available();

/// Carries 1 MiB between two hosts, alone and beside another, and compares with the closed form.
/// Fails where that is wrong or the back end is missing. Looks once per process.
Status check_simgrid();

/// Runs the graph as engine::run does with Division::kFair. Fails where check_simgrid() does, where
/// engine::run does, on flows that SimGrid cannot carry, and on more of them at once than it can
/// carry in reasonable time.
Result<graph::Timeline> run_on_simgrid(const graph::Graph& graph);

/// The same for many graphs, `workers` at a time. Graphs that stand together and have equal
/// capacities and demands share the work of building a platform.
std::vector<Result<graph::Timeline>> run_on_simgrid(std::span<const graph::Graph> graphs,
                                                    unsigned workers);

}  // namespace rehearse::engine
