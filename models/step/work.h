// What the ranks of a layout compute in a step, apart from when: times and FLOPs by what they are
// for.
#pragma once

#include "models/compute/op_cost.h"
#include "models/step/conditions.h"
#include "models/workload/layout.h"

namespace rehearse::step {

/// The time of ops under conditions: what a job is priced with.
class OpPrice {
 public:
  OpPrice(compute::OpCost cost, const Conditions& conditions)
      : cost_(std::move(cost)), conditions_(conditions) {}

  /// With what the device idles around it.
  Seconds operator()(const workload::Op& op) const { return estimate(op).value + idle(op); }
  /// Busy. The interval of what was measured is its own, that of the rest the conditions', for
  /// convolutions not narrower than that of the laws.
  Estimate<Seconds> estimate(const workload::Op& op) const;
  Seconds idle(const workload::Op& op) const;

 private:
  compute::OpCost cost_;
  Conditions conditions_;
};

/// Of one rank and step, as a mean over all ranks of the layout.
struct Work {
  Seconds compute = Seconds::s(0);    ///< forward and backward
  Seconds recompute = Seconds::s(0);  ///< of what forward had computed
  Seconds optimizer = Seconds::s(0);
  Seconds launch = Seconds::s(0);  ///< what launching kernels takes longer than running them
  Flops model = Flops::flop(0);    ///< of matrix operations
  Flops recomputed = Flops::flop(0);
  /// The interval of compute, recompute and optimizer together, as factors.
  double fastest = 1, slowest = 1;
  Provenance provenance = Provenance::kRecorded;
  /// Of the time, by provenance.
  std::array<double, 4> share_by_provenance = {};
};

Work work_of(const workload::Layout& layout, const OpPrice& price, const Conditions& conditions);

}  // namespace rehearse::step
