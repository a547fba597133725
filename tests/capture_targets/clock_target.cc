// A program whose wall clock steps back by two seconds, for itself and the capture library.
#include <atomic>

#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/capture_targets/nvtx_api.h"

namespace {

std::atomic<time_t> behind{0};

void ranges(const char* name) {
  for (int i = 0; i < 100; ++i) {
    nvtxRangePushA(name);
    usleep(2000);
    nvtxRangePop();
  }
}

}  // namespace

/// Instead of libc's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec -= behind;
  return result;
}

int main() {
  ranges("earlier");
  nvtxRangePushA("around the step");
  behind = 2;
  nvtxRangePop();
  ranges("later");
  puts("stepped");
  return 7;
}
