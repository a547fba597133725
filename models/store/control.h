// A controller of a cache: a rule that sets its readahead anew for each window of batches, from
// what every choice would have taken in a window before. docs/concepts/controller.md has a worked
// example.
#pragma once

#include <cstdint>
#include <vector>

#include "models/store/cache.h"
#include "sim/base/units.h"

namespace rehearse::store {

/// What a cache reads from, one request at a time: each waits, then its units come.
struct Drive {
  Seconds latency;  ///< of a request
  ByteRate rate;
  Bytes unit;  ///< size of one
};

/// What the requests and units of batches `first` to `end` take. Each unit that fills the cache is
/// a request of its own.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first, std::size_t end);
/// From `first` on.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first = 0);

/// A window has the readahead that would have read the one `delay` windows before in the least
/// time, as caches tell that keep one readahead throughout: what was true then is taken to be true
/// still. Of equals the first choice. The first `delay` windows have that of the cache.
struct Control {
  std::vector<std::uint32_t> choices;  ///< of readahead, units
  std::uint32_t window = kAllBatches;  ///< batches
  std::uint32_t delay = 1;             ///< 0: a window is known when its readahead is set
};

struct Controlled {
  Traffic traffic;
  std::vector<std::uint32_t> readahead;  ///< of each batch
};

/// Fails as run does. REQUIRES: choices, a window of one batch at least, a rate and a unit above 0.
Result<Controlled> run_controlled(const KeyStream& stream, const Cache& cache, const Drive& drive,
                                  const Control& control);

}  // namespace rehearse::store
