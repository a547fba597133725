// What a benchmark reports of a run.
#pragma once

#include <functional>
#include <span>

#include "sim/serving/run.h"

namespace rehearse::serving {

struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// How replicas are used.
struct Use {
  double rented = 0;         ///< seconds, summed over replicas
  double most_replicas = 0;  ///< ready at the same time
  double busy = 0;           ///< share of the rented time in which a step runs
  double overloaded = 0;     ///< share of the time of steps that left requests waiting
  double running = 0;        ///< requests, mean over the time of steps
  double occupancy = 0, peak_occupancy = 0;  ///< of the blocks: over the time of steps, and at most
  double preemptions = 0;
};

/// Of the requests that were not dropped. In seconds, by the definitions of vLLM's benchmark and InferenceMAX's client: all instants are
/// the client's, and a request counts from its sending.
struct Measures : Use {
  Spread ttft;            ///< sending to first token
  Spread ttft_at_server;  ///< entry into the queue to first token
  Spread tpot;        ///< per request (last - first) / (output - 1); of requests with two tokens
  Spread itl;         ///< gaps between tokens, of all requests together
  Spread end_to_end;  ///< sending to last token
  Spread queue;       ///< entry into the queue to the first step with a token of it
  Spread prefill;     ///< from there to the end of the prompt's last step
  /// Of pools: from there until the second pool has blocks, and then until it has keys and values.
  Spread room, transfer;
  Picoseconds begin{0}, end{0};  ///< first sending, last token or leaving
  double duration = 0;           ///< between both
  double requests = 0, output_tokens = 0, input_tokens = 0, reused_tokens = 0;
  double dropped = 0;        ///< requests that left at their deadline
  double loaded_tokens = 0;  ///< those of the reused ones that came from tiers
};

/// Of replicas that run side by side, or of both pools.
Measures measure(std::span<const Run> replicas);

/// How these replicas are used between the begin and the end of a run.
Use use_of(std::span<const Run> replicas, const Measures& of);

}  // namespace rehearse::serving
