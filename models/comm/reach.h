// The shares of a network's rate between nodes that collectives reach, by kind of network.
//
// Sources and residuals: docs/decisions/0054. Reports of rings: 4 x HDR200 .85-.96; 8 x 100G RoCE
// .75; EFA .48-1.14, EFA of p5.48xlarge .80-.94; Omni-Path .1-.3. TCP is not in any report (tcp.h).
#pragma once

#include <cstddef>

#include "models/comm/collective_cost.h"

namespace rehearse::comm {

struct Reach {
  double share;  ///< of the nominal rate of the NICs of a node, for all its devices together
  double width;  ///< factor by which single reports differ from it
  /// The share of rings and trees of groups that have a part of each node. The groups of its other
  /// devices use the NICs and their proxies at the same time.
  double part_share;
  /// Time of a step over this network in addition to NCCL's constant and the latency, with long
  /// messages. A message of b bytes takes b / (b + kHalfWait) of it, by every protocol.
  Seconds step = Seconds::s(0);
  /// The same of the hops from node to node of a tree or ring, not of steps that all ranks wait for. A
  /// ring has as many as a tree: it was measured on two nodes.
  Seconds hop = Seconds::s(0);
};
Reach reach_of(const Network& network);
inline constexpr Bytes kHalfWait = Bytes::kib(64);

/// The rate of messages between nodes, of all devices of a node or the part that takes part.
ByteRate message_rate(const Network& network);
/// The same for rings and trees.
ByteRate ring_rate(const Network& network);

/// The time of a first message between nodes by NCCL's protocol of that index, without Reach::step:
/// latency and NCCL's constant.
Seconds message_step(const Network& network, std::size_t protocol);

}  // namespace rehearse::comm
