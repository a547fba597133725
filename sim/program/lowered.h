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
  std::vector<RankId> ranks;  ///< ranks that are run, in their order
  /// By rank that is run, plus one entry at the end: its ops in the order of its program. Ops from
  /// the last entry on belong to no rank: first those of `arrivals`, then ops that several ranks
  /// wait for, those of services, and messages. Ops of other programs of the graph may precede and
  /// follow them.
  std::vector<std::uint32_t> first_op;
  /// Collectives with a duration, in ascending order. The rank arrives at arrivals[k] with a
  /// separate op, the k-th after first_op.back().
  std::vector<OpId> arrivals;
  std::vector<std::uint32_t> first_of_service = {};  ///< by service: its first op, then the others

  struct Place {
    std::uint32_t run;  ///< index into `ranks`
    std::uint32_t op;   ///< of the rank's program
  };
  /// An arrival has the place of its collective. Nothing for other ops that belong to no rank.
  std::optional<Place> place_of(OpId op) const;
  OpId op(std::size_t run, std::uint32_t op) const { return OpId(first_op[run] + op); }
  /// REQUIRES: all ranks are run.
  OpId op(OpRef ref) const {
    return OpId(
        (ref.of < ranks.size() ? first_op[ref.of] : first_of_service[ref.of - ranks.size()]) +
        ref.op);
  }
  /// The op with which an op of a program starts: its arrival, if it has one.
  OpId start_of(OpId op) const;
};

}  // namespace rehearse::program
