#include "profiler/bench/nvml.h"

#include <utility>

#include <fmt/core.h>

#include "profiler/bench/library.h"

namespace rehearse::bench {
namespace {

constexpr int kSmClock = 1, kMemoryClock = 2;
// Bits of the clock event reasons, from NVML's documentation.
constexpr unsigned long long kPowerCap = 0x4, kHwSlowdown = 0x8, kSyncBoost = 0x10,
                             kSwThermal = 0x20, kHwThermal = 0x40, kPowerBrake = 0x80;

}  // namespace

Result<Nvml> Nvml::open() {
  Nvml nvml;
  const auto to = [](auto*& function) { return reinterpret_cast<void**>(&function); };
  const Symbol symbols[] = {
      {"nvmlInit_v2", to(nvml.init_)},
      {"nvmlShutdown", to(nvml.shutdown_)},
      {"nvmlDeviceGetHandleByPciBusId_v2", to(nvml.by_pci_)},
      {"nvmlDeviceGetClockInfo", to(nvml.clock_)},
      {"nvmlDeviceGetCurrentClocksEventReasons", to(nvml.reasons_),
       "nvmlDeviceGetCurrentClocksThrottleReasons"},
  };
  TRY(open_library("NVML", {"libnvidia-ml.so.1"}, symbols,
                   "install the driver of your NVIDIA GPU"));
  if (const int code = nvml.init_(); code != 0)
    return fail(fmt::format("NVML does not start (error {})", code));
  nvml.live_ = true;
  return nvml;
}

Nvml::Nvml(Nvml&& other) noexcept
    : live_(std::exchange(other.live_, false)),
      init_(other.init_),
      shutdown_(other.shutdown_),
      by_pci_(other.by_pci_),
      clock_(other.clock_),
      reasons_(other.reasons_) {}

Nvml::~Nvml() {
  if (live_) shutdown_();
}

void* Nvml::device_at(const std::string& pci_bus_id) const {
  void* device = nullptr;
  return by_pci_(pci_bus_id.c_str(), &device) == 0 ? device : nullptr;
}

ClockState Nvml::clocks(void* device) const {
  ClockState state;
  unsigned mhz = 0;
  if (clock_(device, kSmClock, &mhz) == 0) state.sm_hz = mhz * 1e6;
  unsigned long long reasons = 0;
  if (reasons_(device, &reasons) == 0) {
    state.throttled =
        (reasons & (kHwSlowdown | kSyncBoost | kSwThermal | kHwThermal | kPowerBrake)) != 0;
    state.capped = (reasons & kPowerCap) != 0;
  }
  return state;
}

double Nvml::memory_clock_hz(void* device) const {
  unsigned mhz = 0;
  return clock_(device, kMemoryClock, &mhz) == 0 ? mhz * 1e6 : 0;
}

}  // namespace rehearse::bench
