#include "tests/bench/peak_memory.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <malloc.h>

namespace rehearse::bench {
namespace {

/// A line of /proc/self/status, such as "VmHWM:     1234 kB", in bytes.
std::optional<std::uint64_t> status(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos) return std::nullopt;
    std::uint64_t kib = 0;
    std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> peak_memory(const std::function<void()>& work) {
  malloc_trim(0);  // else the use of memory that was freed before would not be seen
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;  // the highest so far becomes what is resident now
  if (!reset) return std::nullopt;
  const auto before = status("VmRSS:");
  work();
  const auto highest = status("VmHWM:");
  if (!before || !highest) return std::nullopt;
  return *highest > *before ? *highest - *before : 0;
}

}  // namespace rehearse::bench
