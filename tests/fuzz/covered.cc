// Compiled without the counters of coverage: the sanitizer declares the same names in each source that
// has them, and a second declaration there leaves libFuzzer without counters.
#include "tests/fuzz/covered.h"

#include <cstddef>
#include <cstdio>

// What the sanitizer knows of the program: per edge a counter, and its address with a flag. The
// linker names the ends of their sections.
extern "C" {
extern std::uint8_t __start___sancov_cntrs[];
extern std::uint8_t __stop___sancov_cntrs[];
extern std::uintptr_t __start___sancov_pcs[];
extern char __executable_start[];
}

namespace rehearse::fuzz {

Covered::Covered(const char* file) : file_(file) {
  if (file)
    reached_.resize(static_cast<std::size_t>(__stop___sancov_cntrs - __start___sancov_cntrs));
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
