#include "models/store/cache.h"

#include <fmt/core.h>

#include "models/store/meter.h"

namespace rehearse::store {

std::uint64_t Traffic::accesses(std::size_t first) const {
  std::uint64_t sum = 0;
  for (std::size_t b = first; b < batches.size(); ++b) sum += batches[b].accesses;
  return sum;
}

std::uint64_t Traffic::misses(std::size_t first) const {
  std::uint64_t sum = 0;
  for (std::size_t b = first; b < batches.size(); ++b) sum += batches[b].misses;
  return sum;
}

std::uint64_t Traffic::reads(std::size_t first) const {
  std::uint64_t sum = 0;
  for (std::size_t b = first; b < batches.size(); ++b) sum += batches[b].reads + batches[b].fills;
  return sum;
}

double Traffic::hit_ratio(std::size_t first) const {
  const std::uint64_t all = accesses(first);
  return all == 0 ? 0 : 1 - static_cast<double>(misses(first)) / static_cast<double>(all);
}

Result<Traffic> run(const KeyStream& stream, const Cache& cache) {
  if (cache.readahead == 0 || (cache.readahead > 1 && cache.policy != Policy::kLru))
    return fail(fmt::format("readahead of {} with the policy {}", cache.readahead,
                            kPolicyNames[static_cast<int>(cache.policy)]),
                "1, or more with lru");
  if (cache.around && cache.policy != Policy::kLru)
    return fail(
        fmt::format("around with the policy {}", kPolicyNames[static_cast<int>(cache.policy)]),
        "lru");
  switch (cache.policy) {
    case Policy::kLru:
      return cache.readahead > 1 ? run_lru_readahead(stream, cache)
                                 : run_lru(stream, cache.capacity);
    case Policy::kLfu: return run_lfu(stream, cache.capacity);
    case Policy::kStatic: return run_static(stream, cache.capacity);
    case Policy::kLookAhead: return run_look_ahead(stream, cache.capacity, cache.batches);
    case Policy::kBelady: return run_belady(stream, cache.capacity, cache.batches);
    case Policy::kNextUse: break;
  }
  return run_next_use(stream, cache.capacity, cache.batches);
}

}  // namespace rehearse::store
