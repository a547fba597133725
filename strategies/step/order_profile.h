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
  /// A moment whose held microbatches are maximal: no other moment holds more in all chunks at
  /// once.
  struct Moment {
    bool backward;  ///< true: the begin of a backward; false: the end of a forward
    std::uint32_t chunk;
    std::vector<std::uint32_t> held;  ///< by chunk
  };
  std::vector<Moment> fullest = {};
  /// Work from the last slot of a chunk to the end: passes by chunk.
  struct Rest {
    std::uint32_t chunk;
    std::vector<std::array<std::uint32_t, strategies::kPasses>> passes;
  };
  /// The remaining work of the chunk that finishes first, and of the one that finishes last.
  Rest first_through, last_through;
};

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
