// How much memory a piece of work needs on top of what is there before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace rehearse::bench {

/// Runs `work` and returns by how many bytes the resident memory of this process rose at its
/// highest. Nothing where the system does not say (it needs Linux's /proc/self/clear_refs).
std::optional<std::uint64_t> peak_memory(const std::function<void()>& work);

}  // namespace rehearse::bench
