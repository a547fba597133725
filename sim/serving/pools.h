// Two pools of replicas: one computes prompts, the other generates tokens. Keys and values go from the
// first to the second.
//
//  - A prompt ends with its first token. Its keys and values are sent as soon as a replica of the
//    second pool has blocks for them; these are asked for when the prompt is computed, or, by layer,
//    when the step begins that ends it. Prompts that wait for blocks of a replica get them in turn.
//  - The replica of the first pool keeps the blocks until its keys and values have arrived. It runs
//    no prompts for which it has none left: the second pool presses back.
//  - A client gets the first token when keys and values are there and the request has a row.
//  - Requests of one token never reach the second pool. One that loses its blocks there computes its
//    tokens there again. The second pool has no prefix cache,
//    so that the first one finds the prompts of a conversation's earlier turns and not their answers.
//  - No request leaves at its deadline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/serving/run.h"

namespace rehearse::serving {

/// How long the keys and values of a prompt occupy the links of the replica that sends them and of the
/// one that receives them. Each link has a queue of its own, and works through it in order.
///
/// With L layers, the prompts of a step that begins at b and ends at e are sent in order, and for the
/// i-th of them the links work S_i since the step's first. A layer is sent when it is computed, and
/// the same layer of all its prompts goes before the next layer, so a prompt arrives at
///   max(link free + S_i, b + (e - b) / L + S_i, e + S_i / L) + latency,
/// which is never later than max(link free, e) + S_i + latency, when it is sent whole.
struct Transfer {
  struct Time {
    Seconds token = Seconds::s(0);     ///< per token of the prompt
    Seconds windowed = Seconds::s(0);  ///< per token up to the window
  };
  Time out = {}, in = {};
  std::int64_t window = 0;
  Seconds latency = Seconds::s(0);
  std::int64_t layers = 0;  ///< 0: whole

  Picoseconds of(const Time& time, std::int64_t tokens) const;
};

/// Runs of the first pool's replicas, with the requests that each got, and then of the second's,
/// without requests. Fails as run_replicas() does, and has its requirements. REQUIRES: pools without scaling.
Result<std::vector<Run>> run_pools(const Pool& prefill, const Pool& decode,
                                   const Transfer& transfer, std::span<const Request> requests,
                                   const RunOptions& options = {});

}  // namespace rehearse::serving
