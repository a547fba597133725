// Lowered: the graph of a program, and the positions of its ranks' ops in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/graph/graph.h"
#include "sim/program/program.h"

namespace rehearse::program {

struct Lowered {
  graph::Graph graph;
  std::vector<RankId> ranks;  ///< that are run, in their order
  /// By rank that is run, and one more: its ops in the order of its program. Ops from the last on
  /// carry messages between ranks.
  std::vector<std::uint32_t> first_op;

  struct Place {
    std::uint32_t run;  ///< index into `ranks`
    std::uint32_t op;   ///< of the rank's program
  };
  /// Nothing for an op that carries messages.
  std::optional<Place> place_of(OpId op) const;
};

}  // namespace rehearse::program
