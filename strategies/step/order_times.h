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
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "sim/base/time.h"
#include "strategies/layer_run.h"
#include "strategies/plan.h"
#include "strategies/schedule.h"

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

/// The properties of a stage's order that determine bounds of time and memory.
struct OrderProfile {
  std::uint32_t first_chunk = 0;    ///< chunk of the first slot, a forward
  std::uint32_t last_chunk = 0;     ///< chunk of the last backward of inputs
  std::uint32_t weights_after = 0;  ///< number of backwards of weights after that
  bool splits_weights = false, splits_recompute = false;
  /// The moment of its kind at which the chunks together hold the most microbatches; the last chunk
  /// of several.
  struct Moment {
    bool backward = false;  ///< true: the begin of a backward; false: the end of a forward
    std::uint32_t chunk = 0;
    std::vector<std::uint32_t> held = {};  ///< by chunk
    friend bool operator==(const Moment&, const Moment&) = default;
  };
  std::array<Moment, 2> fullest = {};  ///< of forward, of backward
  /// Work from the last slot of a chunk to the end: passes by chunk.
  struct Rest {
    std::uint32_t chunk;
    std::vector<std::array<std::uint32_t, strategies::kPasses>> passes;
    friend bool operator==(const Rest&, const Rest&) = default;
  };
  /// The remaining work of the chunk that finishes first, and of the one that finishes last.
  Rest first_through, last_through;

  friend bool operator==(const OrderProfile&, const OrderProfile&) = default;
};
/// REQUIRES: an order of one stage.
OrderProfile profile_of(const std::vector<workload::Slot>& order, std::uint32_t chunks);

/// The profiles of strategies::order_of. The middle of an order repeats, so that a profile does not
/// depend on the number of microbatches from some number on, except for all that gpipe holds.
class OrderProfiles {
 public:
  const OrderProfile& of(strategies::Schedule schedule, const strategies::PipelineShape& shape,
                         std::uint32_t stage, bool recomputes);

 private:
  using Key = std::tuple<strategies::Schedule, std::uint32_t, std::uint32_t, std::uint32_t,
                         std::uint32_t, bool>;
  std::map<Key, OrderProfile> known_;
};

}  // namespace rehearse::step
