// The system services that the injected library uses: clocks, memory, waiting, one line of text.
#pragma once

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace rehearse::capture {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }

/// Returns zeroed memory that takes space only where it is touched; null if there is none. It is
/// kept out of huge pages, which would take 2 MiB for the first byte.
inline void* reserve_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}

using Futex = std::atomic<std::uint32_t>;

/// Returns when `word` is no longer `expected`, when woken, after `ns` nanoseconds, or spuriously.
inline void futex_wait(Futex& word, std::uint32_t expected, std::uint64_t ns) {
  const timespec timeout = {.tv_sec = static_cast<time_t>(ns / 1000000000u),
                            .tv_nsec = static_cast<long>(ns % 1000000000u)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}
inline void futex_wake(Futex& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// Writes "rehearse: " and the parts as one line to stderr.
void say(std::initializer_list<std::string_view> parts);

}  // namespace rehearse::capture
