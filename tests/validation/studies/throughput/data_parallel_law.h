// The step of a data-parallel job from a few measured steps, where nothing is known of its
// operations.
//
//   alone(b)  on one device at batch b: affine between the batches that were measured
//   sum(n)    of the gradients over n devices: a ring of equal links (models/comm/closed_form.h)
//   step      alone - backward + max(backward, early) + overlap · min(backward, early) + late
//
// Backward is two thirds of the step alone. The sum overlaps it as gradients become ready,
// bucket by bucket (`early`); what becomes ready last is summed after it (`late`). Both are slowed
// at the same time as in strategies/step (Conditions::overlap_penalty).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct BatchStep {
  double batch;
  Seconds step;
};

/// Steps on one device by batch.
class StepAlone {
 public:
  /// REQUIRES: one row at least; batches and steps above zero, no batch twice.
  explicit StepAlone(std::vector<BatchStep> measured);

  /// Beyond the measured batches along the two nearest; a smaller batch takes no less than its
  /// share of the smallest that was measured, a larger one no less than the largest. One row alone
  /// is the step at every batch.
  Seconds at(double batch) const;

 private:
  std::vector<BatchStep> rows_;  // by batch
};

/// The share of the gradients that PyTorch's DistributedDataParallel sums after backward: its last
/// bucket, where the first holds 1 MiB and all others 25 MiB (its documented defaults).
double late_share(Bytes gradients);

/// A ring over links of one kind.
struct GradientSum {
  Bytes gradients;
  double late;        ///< share that is summed after backward, from 0 to 1
  double s_per_byte;  ///< of the slowest link; 0 where backward hid all that was measured
  Seconds latency;    ///< of one message
  /// How much quicker or slower the link may be than one that was measured for as many ranks.
  double unsure = 1;

  Seconds over(std::uint32_t ranks) const;
};

/// The step with a sum of this length. REQUIRES: alone above zero.
Seconds step_with_sum(Seconds alone, Seconds sum, double late);
/// The sum that makes a step this long; none where it is not longer than alone.
Seconds sum_within(Seconds step, Seconds alone, double late);

/// `sum.s_per_byte` that explains a measured step.
double s_per_byte_of(Seconds step, Seconds alone, std::uint32_t ranks, const GradientSum& sum);

/// `GradientSum::unsure` of a link that was measured among `from` ranks, and is taken for more: the
/// interval of collectives widens as much with each doubling (docs/concepts/calibration.md).
double unsure_beyond(std::uint32_t from, std::uint32_t ranks);

/// Of `ranks` devices; one alone needs no sum. A 90 % interval: steps alone from 0.85 to 1.2 of
/// their prediction, sums from 0.7 to 1.5, as they scatter in Pollux's T4 cluster, and `unsure`
/// times that.
Estimate<Seconds> data_parallel_step(Seconds alone, const GradientSum& sum, std::uint32_t ranks);

}  // namespace rehearse::cli
