// The constants of a device: those of its own calibration, else those of a device of the same
// chip, else the shared ones, with its sustained rate by the power limit.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/compute/calibration.h"

namespace rehearse::compute {

struct Transferred {
  Constants constants;
  std::vector<std::string> sources;  ///< one line each, for people
};

/// REQUIRES: the first calibration is that of kTypical, and has every arithmetic and memory.
Transferred constants_for(const DeviceFacts& facts, std::span<const Calibration> calibrations);

/// Whether elementwise kernels get the share of the memory rate that HBM gives since Volta.
bool fast_memory(const DeviceFacts& facts);

/// The power rule: the share of its peak that a device sustains in matrix products if power is the
/// only limit: power limit ÷ (peak · energy of an operation), at most 1. The energy of a
/// process was derived from T4 (18 pJ per FP32 FLOP at 12 nm) and bounded by devices without the
/// limit (A100 at 7 nm, H100 at 4 nm); in matrix units it is a seventh. 1 without a power limit.
double power_share(const DeviceFacts& facts, Arithmetic arithmetic);

}  // namespace rehearse::compute
