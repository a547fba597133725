// The policies of models/store as one would write them on paper: every question is answered by
// looking at all of the stream or all of the cache.
#pragma once

#include "models/store/cache.h"

namespace rehearse::test {

store::Traffic naive_run(const store::KeyStream& stream, const store::Cache& cache);

/// The least misses that any policy reaches that takes in, on a miss, the key or nothing, and drops
/// what it likes. Tries everything: for a handful of keys and a dozen accesses.
std::uint32_t least_misses(const store::KeyStream& stream, std::uint32_t capacity);

}  // namespace rehearse::test
