// Order times: when the passes of a pipeline run, from their durations and the orders of its
// stages.
//
// A stage runs its slots one after the other. A forward pass waits for the forward pass of the same
// microbatch through the previous chunk and its transfer, a backward pass for the backward pass
// through the next chunk. The result is exact, in integer picoseconds.
//
// The host of a stage that has no neighbours runs ahead: it launches a pass as soon as it has
// launched the pass before, until the queue is full (launch_queue.h).
//
// The middle of an order repeats with later microbatches. Once all stages also repeat
// in time (each slot a constant later than the one a period before), the rest of the middle
// is skipped; the result is the same to the picosecond.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "sim/base/time.h"
#include "strategies/layer_run.h"

namespace rehearse::step {

/// A pass that its host launches ahead of the device. If both begin together it takes as long as
/// OrderCosts::passes says.
struct PassAhead {
  Picoseconds device{0}, host{0};
  double launches = 0;
};

struct OrderCosts {
  /// By place in the chain of chunks (strategies::chain_of), then by pass.
  std::vector<std::array<Picoseconds, strategies::kPasses>> passes;
  /// By place: from there to the next place, and back from that; 0 on the same stage.
  std::vector<Picoseconds> transfers, returns;
  /// By place, then by pass, where the host runs ahead: with one stage. Else empty.
  std::vector<std::array<PassAhead, strategies::kPasses>> ahead = {};
};

struct OrderTimes {
  std::vector<Picoseconds> end;         ///< by stage: the end of its last slot
  std::vector<Picoseconds> last_begin;  ///< by place in the chain: of the last slot of that chunk
  std::vector<Picoseconds> last_host;   ///< when its host began to launch that slot
  std::uint64_t slots = 0;              ///< evaluated, not skipped, slots
};

/// `skip`: whether repetitions may be skipped. Fails if stages deadlock.
/// REQUIRES: each order has every pass of every microbatch at most once, and chunks and
/// microbatches of the layout.
Result<OrderTimes> order_times(const workload::Layout& layout,
                               std::span<const strategies::ChunkPlace> chain,
                               const OrderCosts& costs, bool skip = true);

}  // namespace rehearse::step
