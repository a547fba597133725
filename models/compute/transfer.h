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

/// The share of the half-precision peak that the kernels get on `to` which get `share` of it on
/// `from`, the same code on both: it does as much per multiprocessor and clock, and gains nothing
/// from matrix units that it was not written for. MPT's Triton attention of 2023: 0.35 on A100,
/// from which 0.19 follows on H100; a fit to its jobs there gives 0.19. Nothing across vendors, and
/// where a clock or the peak is not known.
std::optional<double> same_kernels_share(double share, const DeviceFacts& from,
                                         const DeviceFacts& to);

}  // namespace rehearse::compute
