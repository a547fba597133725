// The drive of a cache, one request at a time.
#pragma once

#include "models/store/cache.h"
#include "sim/base/units.h"

namespace rehearse::store {

/// Each request waits, then its units are transferred.
struct Drive {
  Seconds latency;  ///< per request
  ByteRate rate;
  Bytes unit;  ///< size of one
};

/// Time of the requests and units of the batches from `first` on. Each unit that fills the cache is
/// a separate request.
Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first = 0);

}  // namespace rehearse::store
