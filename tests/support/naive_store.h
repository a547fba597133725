// The policies of models/store, implemented by definition: every question is answered by searching
// all of the stream or all of the cache.
#pragma once

#include "models/store/cache.h"
#include "models/store/prefetch.h"

namespace rehearse::test {

store::Traffic naive_run(const store::KeyStream& stream, const store::Cache& cache);

/// The keys that each batch reads, those of them that it does not have in hand as they left in it,
/// and those that leave in it.
struct Moved {
  std::vector<std::vector<store::Key>> read, fresh, left;
};
Moved naive_moves(const store::KeyStream& stream, const store::Cache& cache);

/// When each batch has been worked on, in whole ms, by living through every one of them: a reader,
/// a worker and a writer. No batch is read before each of its keys is in the store as it last left.
std::vector<int> naive_step_ends(const Moved& moved, std::uint32_t ahead, int step, int read,
                                 int write);

/// The fewest misses of any policy that, on a miss, loads the key or nothing, and drops any keys.
/// Tries everything: only for a handful of keys and a dozen accesses.
std::uint32_t least_misses(const store::KeyStream& stream, std::uint32_t capacity);

}  // namespace rehearse::test
