// How long an op takes on a device.
//
//   Result<OpCost> cost = OpCost::on("h100_sxm5_80", {});
//   Estimate<Seconds> time = cost->time(op);
//
// The laws and their sources: docs/concepts/op-cost.md. Provenance: recorded where the op carries a
// measurement of these extents; interpolated inside the envelope of the device's table;
// extrapolated outside it; datasheet where only published peaks are known and the constants are
// those of other devices.
//
// An OpCost is a value: copies are cheap, and share what is never changed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/calibration.h"
#include "models/compute/device_facts.h"
#include "models/compute/measured_ops.h"
#include "models/workload/op.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"

namespace rehearse::compute {

/// How a framework on a cluster uses a device, against benchmarks of single operations. Constants
/// are fitted on whole jobs or measured by the user; each has a physical range.
struct Sustained {
  /// Time of matrix operations ÷ that of a benchmark: benchmarks run cool. 1 to 1.6. Not of those
  /// in FP32, which heat less: whole models in FP32 take what benchmarks say.
  std::optional<double> gemm = {};
  /// Share of the peak memory rate that elementwise kernels get. 0.3 to 0.95.
  std::optional<double> memory = {};
  /// Share of the peak matrix rate that fused attention gets, causal work counted once. 0.1 to 0.8.
  std::optional<double> attention = {};
};

class OpCost {
 public:
  /// Fails for a device that is not in the catalog and for a value of `sustained` outside its
  /// range. Of a partition the shares of peaks are those of its device, its peaks and
  /// multiprocessors its own. REQUIRES: calibrations as constants_for takes them.
  static Result<OpCost> on(std::string_view device, const Sustained& sustained,
                           std::span<const Calibration> calibrations = shipped_calibrations());
  /// The same for a device that need not be in the catalog.
  static Result<OpCost> on(const DeviceFacts& facts, const Sustained& sustained,
                           std::span<const Calibration> calibrations = shipped_calibrations());

  /// The same, which knows what was measured of operations one by one on this device.
  OpCost with(MeasuredOps measured) const;

  /// What the op carries as recorded for the extents it has; else what was measured of it by
  /// itself; else the recording, rescaled; else what the laws say. REQUIRES: the op does not
  /// communicate.
  Estimate<Seconds> time(const workload::Op& op) const;

  /// What was measured of the op by itself, carried over to a job: by what a recording of both
  /// shows, else by what is sustained. Nothing where it was not.
  std::optional<Estimate<Seconds>> measured(const workload::Op& op) const;

  /// What the laws say, whether or not the op carries a recording. REQUIRES: as `time`.
  Estimate<Seconds> predicted(const workload::Op& op) const;

  /// A recording of `before` for the extents of `after`: measured × predicted(after) ÷
  /// predicted(before). The interval adds to the recording's own half of what the prediction's
  /// alone would be, as the errors of two predictions of one law on one device mostly cancel.
  /// Equal extents leave it as it is. REQUIRES: neither communicates.
  Estimate<Seconds> rescale(const Estimate<Seconds>& measured, const workload::Op& before,
                            const workload::Op& after) const;

  /// A recording of `op` on the device of `from`, on this one: measured × predicted here ÷
  /// predicted there. To its interval half of that of a prediction alone is added, as in `rescale`;
  /// between variants of a device that the laws do not tell apart, and where they know nothing of
  /// the op, it stays as it is.
  Estimate<Seconds> carried(const Estimate<Seconds>& measured, const workload::Op& op,
                            const OpCost& from) const;

  /// How the constants were obtained, one line each; for people.
  const std::vector<std::string>& sources() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
  std::shared_ptr<const MeasuredOps> measured_ = {};  ///< null where nothing was
  explicit OpCost(std::shared_ptr<const State> state) : state_(std::move(state)) {}
};

}  // namespace rehearse::compute
