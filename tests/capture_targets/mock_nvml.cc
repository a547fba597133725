// A libnvidia-ml.so.1 that does what the environment says:
//   MOCK_NVML_BOARDS=2              boards; 1 where unset
//   MOCK_NVML_POWER=100000,300000   mW of one reading after the other, again and again
//   MOCK_NVML_ERRORS=fields:3 init:9  results of calls, by the word of each
//   MOCK_NVML_MIG=60,16             multiprocessors of the instances of each board
//   MOCK_NVML_FIELD_TYPE=2          NVML's number of the type in which field values are given
// Each call costs MOCK_NVML_MS milliseconds. REHEARSE_OLD_NVML leaves out what old drivers lack.
#include <atomic>
#include <cstdint>
#include <cstring>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "profiler/capture/nvml_abi.h"

namespace {

using namespace rehearse::capture::nvml;

#define MOCK extern "C" [[gnu::visibility("default")]] int

std::atomic<unsigned> power_readings{0};
std::atomic<int> initialized{0};

/// What a call gives: what the environment says, and an error where NVML is not initialised.
int result(const char* call) {
  if (const char* ms = getenv("MOCK_NVML_MS")) {
    const timespec time = {0, atol(ms) * 1000000};
    nanosleep(&time, nullptr);
  }
  char key[64];
  snprintf(key, sizeof key, "%s:", call);
  const char* errors = getenv("MOCK_NVML_ERRORS");
  const char* at = errors ? strstr(errors, key) : nullptr;
  if (at) return atoi(at + strlen(key));
  return initialized.load() > 0 || strcmp(call, "init") == 0 ? 0 : 1;
}

unsigned number(const char* variable, unsigned otherwise) {
  const char* text = getenv(variable);
  return text ? static_cast<unsigned>(atol(text)) : otherwise;
}

/// The n-th number of a list; begins anew at its end. 0 where there is none.
unsigned entry(const char* list, unsigned n, unsigned* count = nullptr) {
  unsigned entries = 0, values[64] = {};
  for (const char* at = list; at && *at && entries < 64;) {
    values[entries++] = static_cast<unsigned>(strtoul(at, nullptr, 10));
    at = strchr(at, ',');
    if (at) ++at;
  }
  if (count) *count = entries;
  return entries ? values[n % entries] : 0;
}

// A handle is the board's number plus one, and of an instance its own plus one above that.
std::uintptr_t board_of(Device device) { return (reinterpret_cast<std::uintptr_t>(device) & 0xFF); }
std::uintptr_t instance_of(Device device) { return reinterpret_cast<std::uintptr_t>(device) >> 8; }

}  // namespace

#ifdef REHEARSE_OLD_NVML
MOCK nvmlInit() {
#else
MOCK nvmlInit_v2() {
#endif
  if (const int error = result("init")) return error;
  initialized.fetch_add(1);
  return 0;
}
MOCK nvmlShutdown() { return initialized.fetch_sub(1) > 0 ? 0 : 1; }
MOCK nvmlDeviceGetCount(unsigned* count) {
  *count = number("MOCK_NVML_BOARDS", 1);
  return result("count");
}
MOCK nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(std::uintptr_t{index} + 1);
  return result("by_index");
}
MOCK nvmlDeviceGetUUID(Device device, char* text, unsigned bytes) {
  if (instance_of(device))
    snprintf(text, bytes, "MIG-%u-%u", static_cast<unsigned>(board_of(device) - 1),
             static_cast<unsigned>(instance_of(device) - 1));
  else
    snprintf(text, bytes, "GPU-%u-of-the-mock", static_cast<unsigned>(board_of(device) - 1));
  return result("uuid");
}
MOCK nvmlDeviceGetName(Device, char* text, unsigned bytes) {
  snprintf(text, bytes, "Mock H200");
  return result("name");
}
MOCK nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
  *milliwatts = entry(getenv("MOCK_NVML_POWER"), power_readings.fetch_add(1));
  return result("power");
}
MOCK nvmlDeviceGetClockInfo(Device, unsigned domain, unsigned* mhz) {
  *mhz = domain == kClockCore ? 1980 : 3201;
  return result("clock");
}
MOCK nvmlDeviceGetTemperature(Device, unsigned, unsigned* celsius) {
  *celsius = 45;
  return result("temperature");
}

#ifdef REHEARSE_OLD_NVML

MOCK nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* reasons) {
  *reasons = 8;
  return result("reasons");
}

#else

MOCK nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  snprintf(text, bytes, "580.65.06");
  return result("driver_version");
}
MOCK nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  *milliwatts = 700000;
  return result("power_limit");
}
MOCK nvmlDeviceGetTotalEnergyConsumption(Device, unsigned long long* millijoules) {
  static std::atomic<unsigned> energy_readings{0};
  *millijoules = 1000000 + 5000 * energy_readings.fetch_add(1);
  return result("energy");
}
MOCK nvmlDeviceGetFieldValues(Device, int count, FieldValue* values) {
  if (const int error = result("fields")) return error;
  for (int i = 0; i < count; ++i) {
    values[i].result = result("field");
    if (values[i].field != kPowerInstant) values[i].result = kNotSupported;
    const unsigned milliwatts = entry(getenv("MOCK_NVML_POWER"), power_readings.fetch_add(1));
    values[i].type = number("MOCK_NVML_FIELD_TYPE", kU32);
    switch (values[i].type) {
      case kDouble: values[i].value.as_double = milliwatts; break;
      case kU32:
      case kI32: values[i].value.as_u32 = milliwatts; break;
      case kU16: values[i].value.as_u16 = static_cast<std::uint16_t>(milliwatts); break;
      default: values[i].value.as_u64 = milliwatts;
    }
  }
  return 0;
}
MOCK nvmlDeviceGetCurrentClocksEventReasons(Device, unsigned long long* reasons) {
  *reasons = 4;
  return result("reasons");
}
MOCK nvmlDeviceGetMigMode(Device, unsigned* now, unsigned* pending) {
  *now = *pending = getenv("MOCK_NVML_MIG") ? 1 : 0;
  return result("mig_mode");
}
MOCK nvmlDeviceGetMaxMigDeviceCount(Device, unsigned* count) {
  *count = 7;
  return result("max_instances");
}
MOCK nvmlDeviceGetMigDeviceHandleByIndex(Device board, unsigned index, Device* instance) {
  unsigned instances = 0;
  entry(getenv("MOCK_NVML_MIG"), 0, &instances);
  if (index >= instances) return 6;  // not found
  *instance = reinterpret_cast<Device>(board_of(board) | (std::uintptr_t{index} + 1) << 8);
  return result("instance");
}
MOCK nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  *id = static_cast<unsigned>(instance_of(device)) + 1;
  return result("gpu_instance");
}
MOCK nvmlDeviceGetComputeInstanceId(Device, unsigned* id) {
  *id = 0;
  return result("compute_instance");
}
MOCK nvmlDeviceGetAttributes_v2(Device device, Attributes* attributes) {
  if (!instance_of(device)) return kNotSupported;
  attributes->multiprocessors =
      entry(getenv("MOCK_NVML_MIG"), static_cast<unsigned>(instance_of(device) - 1));
  return result("attributes");
}

#endif
