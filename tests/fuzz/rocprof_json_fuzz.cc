#include <cstddef>
#include <cstdint>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  rehearse::fuzz::rocprof_json({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
