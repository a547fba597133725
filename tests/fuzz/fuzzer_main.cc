// libFuzzer's entry: one program for all readers; READER names the one to run. If COVERED names a
// file, the edges between basic blocks that the inputs reached are written there at the end, for
// coverage.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/fuzz/readers.h"

// What the sanitizer knows of the program: per edge a counter, and its address with a flag. The
// linker names the ends of their sections.
extern "C" {
extern std::uint8_t __start___sancov_cntrs[], __stop___sancov_cntrs[];
extern std::uintptr_t __start___sancov_pcs[];
extern char __executable_start[];
}

namespace rehearse::fuzz {
namespace {

/// The edges that any input reached.
class Covered {
 public:
  explicit Covered(const char* file) : file_(file), reached_(file ? edges() : 0) {}
  Covered(const Covered&) = delete;
  Covered& operator=(const Covered&) = delete;

  /// Call it after each input: libFuzzer clears the counters before the next.
  void note() {
    for (std::size_t edge = 0; edge < reached_.size(); ++edge)
      if (__start___sancov_cntrs[edge] != 0) reached_[edge] = 1;
  }

  /// Writes for each edge its address in the program, and 2^63 more if it was reached: 64 bits each.
  ~Covered() {
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

 private:
  static std::size_t edges() {
    return static_cast<std::size_t>(__stop___sancov_cntrs - __start___sancov_cntrs);
  }

  const char* file_;
  std::vector<std::uint8_t> reached_;
};

const Target& named() {
  const char* reader = std::getenv("READER");
  const auto found =
      std::ranges::find(targets(), std::string_view(reader ? reader : ""), &Target::name);
  if (found != targets().end()) return *found;
  std::fputs("READER=NAME fuzzer …, with a name of tests/fuzz/readers.cc\n", stderr);
  std::exit(2);
}

}  // namespace
}  // namespace rehearse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const rehearse::fuzz::Target& target = rehearse::fuzz::named();
  static rehearse::fuzz::Covered covered(std::getenv("COVERED"));
  target.run({reinterpret_cast<const char*>(bytes), size});
  covered.note();
  return 0;
}
