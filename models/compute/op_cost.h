// OpCost: the time of an op on a device, with its interval and provenance.
//
//   Result<OpCost> cost = OpCost::on("h100_sxm5_80", {});
//   Estimate<Seconds> time = cost->time(op);
//
// The laws and their sources: docs/concepts/op-cost.md. Provenance: recorded if the op carries a
// measurement of these extents; interpolated inside the envelope of the device's table;
// extrapolated outside it; datasheet if only published peaks are known and the constants are
// those of other devices.
//
// An OpCost is a value: copies are cheap and share immutable data.
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
  /// Time of matrix operations ÷ that of a benchmark, which runs cool. 1 to 1.6. Not for
  /// FP32, which heats less: whole models in FP32 take the benchmark's time.
  std::optional<double> gemm = {};
  /// Share of the peak memory rate that elementwise kernels get. 0.3 to 0.95.
  std::optional<double> memory = {};
  /// Share of the peak matrix rate that fused attention gets, causal work counted once, whatever
  /// the sequence. Absent: by its law. 0.1 to 0.8.
  std::optional<double> attention = {};
  /// Whose kernels compute fused attention. Absent: those that the device usually runs, with a
  /// wider interval.
  std::optional<AttentionKernels> attention_kernels = {};
};

class OpCost {
 public:
  /// Fails for a device that is not in the catalog and for a value of `sustained` outside its
  /// range. A partition has the shares of peaks of its device, and its own peaks and
  /// multiprocessors. REQUIRES: calibrations as constants_for takes them.
  static Result<OpCost> on(std::string_view device, const Sustained& sustained,
                           std::span<const Calibration> calibrations = shipped_calibrations());
  /// The same for a device that need not be in the catalog.
  static Result<OpCost> on(const DeviceFacts& facts, const Sustained& sustained,
                           std::span<const Calibration> calibrations = shipped_calibrations());

  /// The same with measured times of single operations on this device.
  OpCost with(MeasuredOps measured) const;

  /// The recorded time for the op's extents; else the measured time of the single op; else the
  /// rescaled recording; else the laws. REQUIRES: the op does not
  /// communicate.
  Estimate<Seconds> time(const workload::Op& op) const;

  /// The measured time of the single op, adjusted to a job: by a recording of the
  /// same operations, else by `sustained`. Nothing if it was not measured.
  std::optional<Estimate<Seconds>> measured(const workload::Op& op) const;

  /// By the laws alone, regardless of a recording. REQUIRES: as `time`.
  Estimate<Seconds> predicted(const workload::Op& op) const;

  /// A recorded time of `before` for the extents of `after`: measured × predicted(after) ÷
  /// predicted(before). The interval adds half of the prediction's own to that of the
  /// recording, because the errors of two predictions by one law on one device mostly cancel.
  /// Equal extents leave it unchanged. REQUIRES: neither communicates.
  Estimate<Seconds> rescale(const Estimate<Seconds>& measured, const workload::Op& before,
                            const workload::Op& after) const;

  /// A recorded time of `op` on the device of `from`, on this one: measured × predicted here ÷
  /// predicted there. Within a vendor its interval grows by half of that of a prediction, as in
  /// `rescale`. Libraries of different vendors have no errors in common, so that it grows by those
  /// of both predictions, in squares. It is unchanged between variants of a device that the laws
  /// do not distinguish, and for ops that they do not know.
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
