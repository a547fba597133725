// Calibrations by device: the shipped ones (models/comm/calibrations/*.yaml), and their transfer
// to devices without rows.
//
// Bandwidth transfers between NVLink devices by the number and rate of their links. Latency does
// not follow the generation (H100 is 1.6 times as fast as A100 and B200), so it is taken from the
// sibling of the same generation, or set by one measured small collective (`anchored`). Collectives
// over PCIe through the host depend on the machine: devices without rows get the median of the three
// kinds of machines that were measured (docs/decisions/0166), and an interval that holds all. A device
// whose rows are from such a machine keeps them, with the same interval (docs/decisions/0174).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/comm/collective_cost.h"
#include "sim/base/result.h"

namespace rehearse::comm {

/// The shipped calibrations, read once and kept for the life of the program; sorted by device.
const std::vector<Calibration>& shipped_calibrations();

/// The calibration of the device, or that of its sibling as it applies to the device. `fabric`
/// connects the devices; absent: that of the device's own rows, else that of its usual node, where
/// cards without NVSwitch have no bridges. Fails with the reason on a device without a measured
/// sibling, on a partition of such a device, and on an unknown name.
Result<Calibrated> calibration_for(std::string_view device, std::optional<Fabric> fabric = {});

/// A device without rows of its own.
struct Unmeasured {
  std::string device;
  Generation generation;
  std::uint32_t links;
  double ratio;  ///< its NVLink bandwidth over that of the device whose rows it takes
};

/// `from` carried over to such a device, with intervals `widen` times as wide. Two parts are not
/// carried over to another generation: reduction in the switch (H100 gains by it from 32 MiB, no
/// other device as much) and the copy of all_gather.
Calibrated carried_over(const Calibration& from, const Unmeasured& to, double widen);

/// The calibration with all latencies scaled so that the collective of that size takes `measured`.
/// Widths at small sizes become those observed when H100 and B200 were anchored on each other by
/// one small all_reduce. Fails if the factor is outside 1/10 to 10.
Result<Calibrated> anchored(Calibrated calibrated, const Group& group, Bytes size,
                            Seconds measured);

}  // namespace rehearse::comm
