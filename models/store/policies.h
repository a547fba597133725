// One function per policy. Internal to the module.
#pragma once

#include "models/store/cache.h"

namespace rehearse::store {

Traffic run_lru(const KeyStream& stream, std::uint32_t capacity);
/// A readahead for each batch.
Traffic run_lru_readahead(const KeyStream& stream, const Cache& cache);
Traffic run_lfu(const KeyStream& stream, std::uint32_t capacity);
Traffic run_static(const KeyStream& stream, std::uint32_t capacity);
Traffic run_look_ahead(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);
Traffic run_belady(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);
Traffic run_next_use(const KeyStream& stream, std::uint32_t capacity, std::uint32_t batches);

}  // namespace rehearse::store
