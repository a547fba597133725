// OrderProfile: the properties of a stage's order that determine bounds of time and memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "strategies/layer_run.h"
#include "strategies/plan.h"
#include "strategies/schedule.h"

namespace rehearse::step {

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
