// Compiled without the counters of coverage: the sanitizer declares the same names in each source that
// has them, and a second declaration there leaves libFuzzer without counters.
#include "tests/fuzz/covered.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

// What the sanitizer knows of the program: per edge a counter, and a row with its address and a flag.
// The linker names the ends of their sections, and gives these calls to the functions below (--wrap).
extern "C" {
extern std::uint8_t __start___sancov_cntrs[];
extern std::uint8_t __stop___sancov_cntrs[];
extern std::uintptr_t __start___sancov_pcs[];
extern char __executable_start[];
void __real___sanitizer_cov_8bit_counters_init(std::uint8_t* start, std::uint8_t* stop);
void __real___sanitizer_cov_pcs_init(const std::uintptr_t* start, const std::uintptr_t* stop);
void __wrap___sanitizer_cov_8bit_counters_init(std::uint8_t*, std::uint8_t*) {}
void __wrap___sanitizer_cov_pcs_init(const std::uintptr_t*, const std::uintptr_t*) {}
}

namespace rehearse::fuzz {
namespace {

constexpr std::size_t kBlock = 256;           // edges; libFuzzer has room for 4,096 blocks
constexpr std::uint64_t kFirstInputs = 5'000;  // more than a corpus has
constexpr std::uint64_t kBetween = 256;

std::size_t edges() {
  return static_cast<std::size_t>(__stop___sancov_cntrs - __start___sancov_cntrs);
}

bool is_reached(std::size_t begin, std::size_t end) {
  static constexpr std::uint8_t kNone[kBlock] = {};
  return std::memcmp(__start___sancov_cntrs + begin, kNone, end - begin) != 0;
}

}  // namespace

void SeenBlocks::after_input() {
  if (++inputs_ < kFirstInputs || inputs_ % kBetween == 0) show_reached();
}

void SeenBlocks::show_reached() {
  seen_.resize(edges() / kBlock + 1);
  for (std::size_t block = 0; block < seen_.size(); ++block) {
    const std::size_t begin = block * kBlock, end = std::min(edges(), begin + kBlock);
    if (seen_[block] || !is_reached(begin, end)) continue;
    seen_[block] = true;
    __real___sanitizer_cov_8bit_counters_init(__start___sancov_cntrs + begin,
                                              __start___sancov_cntrs + end);
    __real___sanitizer_cov_pcs_init(__start___sancov_pcs + 2 * begin, __start___sancov_pcs + 2 * end);
  }
}

Covered::Covered(const char* file) : file_(file) {
  if (file) reached_.resize(edges());
}

void Covered::note() {
  for (std::size_t edge = 0; edge < reached_.size(); ++edge)
    if (__start___sancov_cntrs[edge] != 0) reached_[edge] = 1;
}

Covered::~Covered() {
  std::FILE* file = file_ ? std::fopen(file_, "wb") : nullptr;
  if (!file) return;
  for (std::size_t edge = 0; edge < reached_.size(); ++edge) {
    const std::uint64_t address =
        __start___sancov_pcs[2 * edge] - reinterpret_cast<std::uintptr_t>(&__executable_start[0]);
    const std::uint64_t row = address | std::uint64_t{reached_[edge]} << 63;
    std::fwrite(&row, sizeof row, 1, file);
  }
  std::fclose(file);
}

}  // namespace rehearse::fuzz
