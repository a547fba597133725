// A controller of a cache: a rule that sets its readahead for each window of batches, by the
// cost of every choice in an earlier window. docs/concepts/controller.md has a worked
// example.
#pragma once

#include <cstdint>
#include <vector>

#include "models/store/cache.h"
#include "sim/base/units.h"

namespace rehearse::store {

/// The drive of a cache, one request at a time: each waits, then its units are transferred.
struct Drive {
  Seconds latency;  ///< per request
  ByteRate rate;
  Bytes unit;  ///< size of one
};

/// Time of the requests and units of batches `first` to `end`. Each unit that fills the cache is
/// a separate request.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first, std::size_t end);
/// From `first` on.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first = 0);

/// A window gets the readahead with the least read time in the window `delay` windows
/// before, according to caches that keep one readahead throughout. Ties go to the first
/// choice. The first `delay` windows have the cache's own readahead.
struct Control {
  std::vector<std::uint32_t> choices;  ///< readahead choices, units
  std::uint32_t window = kAllBatches;  ///< batches
  std::uint32_t delay = 1;             ///< 0: a window is known when its readahead is set
};

struct Controlled {
  Traffic traffic;
  std::vector<std::uint32_t> readahead;  ///< by batch
};

/// Fails as run does. REQUIRES: choices, a window of one batch at least, a rate and a unit above 0.
Result<Controlled> run_controlled(const KeyStream& stream, const Cache& cache, const Drive& drive,
                                  const Control& control);

}  // namespace rehearse::store
