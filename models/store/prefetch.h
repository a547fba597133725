// Times of batches whose units are read ahead, and written back if the work changes
// them: no unit is read before its last write is in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/store/cache.h"
#include "sim/base/units.h"

namespace rehearse::store {

struct Prefetch {
  /// The number of batches that may be read ahead while one is worked on. 0: reads and work take
  /// turns.
  std::uint32_t ahead = 0;
  Seconds step;  ///< work on a batch
  Seconds read;  ///< per unit; one after another
  /// The write time per evicted unit, one after another, overlapping reads and work; absent: work
  /// changes nothing.
  std::optional<Seconds> write = {};
};

struct BatchTimes {
  Seconds read_begin, read_end, step_begin, step_end;
  Seconds written;  ///< all evictions up to this batch are in the store
};

/// The times of batches that are read in order, each as soon as
/// - the previous one is read,
/// - the one `ahead` + 1 before it has been worked on, and
/// - its data is in the store: BatchTraffic::after,
/// and worked on in order as soon as they are read; evicted units are written after the work.
/// Units that are read ahead need room in addition to the cache.
std::vector<BatchTimes> times_of(const Traffic& traffic, const Prefetch& prefetch);

/// Mean time from batch to batch, from `first` on.
/// REQUIRES: first < times.size().
Seconds time_per_batch(const std::vector<BatchTimes>& times, std::size_t first);

/// The drive of a cache serves one request at a time: each waits, then its units are transferred.
struct Drive {
  Seconds latency;  ///< per request
  ByteRate rate;
  Bytes unit;  ///< size of one
};

/// Time of the requests and units of the batches from `first` on. Each unit that fills the cache is
/// a separate request.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first = 0);

}  // namespace rehearse::store
