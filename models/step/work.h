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
      : cost_(std::move(cost)), scale_(conditions.scale), fp8_(conditions.fp8) {}

  Seconds operator()(const workload::Op& op) const { return estimate(op).value; }
  Estimate<Seconds> estimate(const workload::Op& op) const;

 private:
  compute::OpCost cost_;
  double scale_, fp8_;
};

/// Of one rank and step, as a mean over all ranks of the layout.
struct Work {
  Seconds compute = Seconds::s(0);    ///< forward and backward
  Seconds recompute = Seconds::s(0);  ///< of what forward had computed
  Seconds optimizer = Seconds::s(0);
  Seconds launch = Seconds::s(0);  ///< what launching kernels takes longer than running them
  Flops model = Flops::flop(0);    ///< of matrix operations
  Flops recomputed = Flops::flop(0);
  /// Of compute, recompute and optimizer together, as the op costs say.
  double fastest = 1, slowest = 1;
  Provenance provenance = Provenance::kRecorded;
  /// Of the time, by provenance.
  std::array<double, 4> share_by_provenance = {};
};

Work work_of(const workload::Layout& layout, const OpPrice& price, const Conditions& conditions);

}  // namespace rehearse::step
