// The critical path of a run.
#pragma once

#include <vector>

#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::graph {

/// One op on the path and the time that it accounts for. `begin` is the end of the previous op
/// on the path, so the times join without gaps. It may precede the op's own start if a
/// server needed its turnaround.
struct PathStep {
  OpId op;
  Picoseconds begin;
  Picoseconds end;
};

/// The chain of causes that leads to the end of `last`, in order of time, from time zero on.
std::vector<PathStep> critical_path(const Timeline& timeline, OpId last);

/// The chain that leads to the op that ends last (the first such op). Empty for an empty graph.
std::vector<PathStep> critical_path(const Timeline& timeline);

}  // namespace rehearse::graph
