// Schedules: the messages of a collective under each algorithm.
//
// One description gives both forms. Most algorithms are a list of *phases*: in each, every rank
// sends `count` equal messages to one other rank, each after it has received the one before. As
// messages they are flows (sim/graph/message_flows.h); as a closed form, on links that nothing else
// uses, each phase costs count × (latency + share × size ÷ rate) of its level of the network.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/algorithm.h"
#include "sim/base/collective.h"
#include "sim/base/result.h"
#include "sim/graph/message_flows.h"

namespace rehearse::comm {

/// The members of a collective, and the division of its work.
struct Arrangement {
  std::uint32_t ranks;
  std::uint32_t per_node;     ///< ranks of a node are consecutive; divides `ranks`
  std::uint32_t servers = 0;  ///< kParameterServer: the last ones of the ranks
  std::uint32_t chunks = 8;   ///< parts of a pipelined buffer (tree; ring broadcast and reduce)
  /// NICs of a node. Messages of a ring or tree that leave a node are divided among this many of
  /// its ranks, each with its own NIC, as NCCL divides them among channels. At most `per_node`.
  std::uint32_t rails = 1;
  /// Orders of the rings that share a buffer, on ranks of one node; empty: one ring in order of
  /// rank.
  std::vector<std::vector<std::uint32_t>> rings = {};
  /// Each of the rings, and each pair of ranks, has a link of its own; else they share ports.
  bool links_apart = false;
};

/// The longest chain of messages: the number of messages, and the sum of their shares of the size.
struct Steps {
  double count = 0;
  double share = 0;
  /// Further messages that the busiest port carries at the same time. Each costs the port
  /// cluster::Route::message_cost.
  double queued = 0;
};

struct Schedule {
  std::shared_ptr<const graph::MessageFlows> flows;
  Steps local = {};   ///< within a node, or everywhere where the algorithm knows no levels
  Steps across = {};  ///< between nodes
  /// The number of messages on the longest path of a pipelined buffer; else 0.
  std::uint32_t depth = 0;
  /// The load of the busiest port, as a share of the size. The steps of a pipeline add up to more,
  /// because it fills and drains.
  double busy = 0;
  /// By flow: the share of a port that one of its messages uses while it flows; empty: all of it.
  std::shared_ptr<const std::vector<double>> parts = {};
  /// By flow: whether it is between nodes; empty where only one level has steps.
  std::shared_ptr<const std::vector<char>> across_flows = {};
};

/// The steps of a ring among two or more ranks (all_to_all: pairwise), with `chunks` chunks if it
/// is pipelined.
Steps ring_steps(CollectiveKind kind, std::uint32_t ranks,
                 std::uint32_t chunks = Arrangement{}.chunks);

/// Sizes are counted by kind as in docs/concepts/collectives.md. Fails, with an alternative, if the
/// algorithm does not support this kind or this group.
Result<Schedule> schedule(CollectiveKind kind, Algorithm algorithm, const Arrangement& group);

/// An all_to_all that sends every message at once, with `shares[from][to]` of the size. The closed
/// form is that of the busiest port, and a lower bound where shares differ. REQUIRES: square, not
/// negative.
Schedule uneven_all_to_all(const std::vector<std::vector<double>>& shares);

}  // namespace rehearse::comm
