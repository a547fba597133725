// libFuzzer's entry: one program for all readers; READER names the one to run. If COVERED names a
// file, the edges between basic blocks that the inputs reached are written there at the end, for
// coverage.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/covered.h"
#include "tests/fuzz/readers.h"

namespace rehearse::fuzz {
namespace {

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
  static rehearse::fuzz::SeenBlocks seen;
  static rehearse::fuzz::Covered covered(std::getenv("COVERED"));
  target.run({reinterpret_cast<const char*>(bytes), size});
  seen.after_input();
  covered.note();
  return 0;
}
