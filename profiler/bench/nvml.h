// NVML (libnvidia-ml.so.1): clocks and the reasons for their limits. It is read-only:
// this program changes no setting of a device.
#pragma once

#include <string>

#include "sim/base/result.h"

namespace rehearse::bench {

struct ClockState {
  double sm_hz = 0;        ///< 0: unknown
  bool throttled = false;  ///< by heat, the board's power brake or another device in a sync group
  bool capped = false;     ///< by the power limit
};

class Nvml {
 public:
  /// Fails if NVML is not found or does not start. Results then lack clocks and throttling.
  static Result<Nvml> open();
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) = delete;
  ~Nvml();

  /// The device at a PCI address from CUDA; null if NVML has none there.
  void* device_at(const std::string& pci_bus_id) const;
  ClockState clocks(void* device) const;
  /// The clock of the memory in Hz; 0 if NVML does not report it.
  double memory_clock_hz(void* device) const;

 private:
  Nvml() = default;
  bool live_ = false;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*by_pci_)(const char*, void**) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
};

}  // namespace rehearse::bench
