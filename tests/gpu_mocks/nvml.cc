// NVML of the mock GPU. Environment: MOCK_THROTTLE=N: every Nth question finds the device throttled
// by heat (1: always); MOCK_CAPPED=1: held down by the power limit.
#include <cstring>

#include "tests/gpu_mocks/clock.h"

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  static int here;
  if (std::strncmp(id, "0000:", 5) != 0) return 6;
  *device = &here;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned* mhz) {
  *mhz = which == 2 ? 2619 : 1755;
  return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  static long asked = 0;
  const long every = mock_number("MOCK_THROTTLE", 0);
  *reasons = mock_number("MOCK_CAPPED", 0) ? 0x4 : 0;
  if (every > 0 && ++asked % every == 0) *reasons |= 0x40;
  return 0;
}
}
