// The memory that a piece of work needs in addition to the memory in use before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace rehearse::bench {

/// Runs `work` and returns the peak increase of this process's resident memory, in bytes. Returns
/// nothing if the system does not report it (it needs Linux's /proc/self/clear_refs).
std::optional<std::uint64_t> peak_memory(const std::function<void()>& work);

}  // namespace rehearse::bench
