// The constants of a device: those of its own calibration, else those of a device of the same
// chip, else those of the same generation, else the shared ones, with its sustained rate by the
// power limit.
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
/// only limit: power limit ÷ (peak · energy of an operation), at most 1. The energies of FP32 come
/// from the two devices that power limits, T4 (17.3 pJ at 12 nm) and A100 PCIe (15.2 pJ at 7 nm);
/// V100 and H100, which it does not limit, bound them. 1 without a power limit.
double power_share(const DeviceFacts& facts, Arithmetic arithmetic);

/// The share of its peak that a device sustains in matrix products if power is no limit, relative to
/// a device whose schedulers have spare slots. Volta, Turing and GA100 issue a multiplication every
/// second clock, and load operands in between. Where every slot has to multiply, loads cost rate:
/// 0.8 in FP32 (P100 PCIe 0.78, P100 SXM2 0.84, H100 0.77).
double issue_share(const DeviceFacts& facts, Arithmetic arithmetic);

/// What limits kernels of matrix units from outside (issue, shared memory, power) relative to what the
/// units can use: 2 where the vendor halves the units' rate (GeForce cards, A10G: 512 FLOP per clock
/// and multiprocessor in half precision, where the chip can do 1,024), else 1.
double spare_share(const DeviceFacts& facts);

}  // namespace rehearse::compute
