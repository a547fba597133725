// How long an op takes on a device.
//
//   Result<OpCost> cost = OpCost::on("h100_sxm5_80", {});
//   Estimate<Seconds> time = cost->time(op);
//
// The laws and their sources: docs/concepts/op-cost.md. Provenance: recorded where the op carries a
// measurement of these extents; interpolated inside the envelope of the device's table;
// extrapolated outside it or carried over from another device; datasheet where only published peaks
// are known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/workload/op.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"

namespace rehearse::compute {

/// How a framework on a cluster uses a device, against benchmarks of single operations. Constants
/// are fitted on whole jobs or measured by the user; each has a physical range.
struct Sustained {
  /// Time of matrix operations ÷ that of a benchmark: benchmarks run cool. 1 to 1.6.
  std::optional<double> gemm = {};
  /// Share of the peak memory rate that elementwise kernels get. 0.3 to 0.95.
  std::optional<double> memory = {};
  /// Share of the peak matrix rate that fused attention gets, causal work counted once. 0.1 to 0.8.
  std::optional<double> attention = {};
};

class OpCost {
 public:
  /// Fails for a device that is not in the catalog.
  static Result<OpCost> on(std::string_view device, const Sustained& sustained);

  /// REQUIRES: the op does not communicate.
  Estimate<Seconds> time(const workload::Op& op) const;

  /// How the constants were obtained, one line each; for people.
  const std::vector<std::string>& sources() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
  explicit OpCost(std::shared_ptr<const State> state) : state_(std::move(state)) {}
};

}  // namespace rehearse::compute
