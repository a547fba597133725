// What a program writes that wants its steps to be seen: the header of the example, and nothing
// else.
#include <cstdint>

#include "examples/train_cpu/nvtx.h"

int main() {
  for (std::uint64_t step = 0; step < 3; ++step) {
    const nvtx::Range range("step", step);
    { const nvtx::Range forward("forward"); }
    nvtx::mark("loss", 100 - step);
  }
  nvtx::mark("end");
}
