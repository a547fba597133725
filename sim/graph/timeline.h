// Timeline: start, end and cause of each op of a graph.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"

namespace rehearse::graph {

struct OpTimes {
  Picoseconds start;
  Picoseconds end;
  /// The op whose end made this one start when it did: its last predecessor, or the op that held
  /// its server. Nothing for an op that started at time zero of its own accord.
  std::optional<OpId> cause;
};

struct Timeline {
  std::vector<OpTimes> ops;  ///< by op id

  const OpTimes& operator[](OpId op) const { return ops[op.index()]; }
  OpTimes& operator[](OpId op) { return ops[op.index()]; }

  /// The end of the last op; zero for an empty graph.
  Picoseconds makespan() const {
    Picoseconds last(0);
    for (const OpTimes& op : ops) last = std::max(last, op.end);
    return last;
  }
};

}  // namespace rehearse::graph
