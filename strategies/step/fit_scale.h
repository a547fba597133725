// The scale of Conditions from measured steps, and from three on what a step takes besides:
// `rehearse calibrate job`.
//
// Steps grow with the scale, so that one measured step decides it; of several, the least sum of
// squared logarithms of predicted ÷ measured does. Steps that differ, say in their batch, show a
// part that does not grow with what is computed: input, host, what a framework does once a step.
// From three steps on that part is fitted too, where their computing differs by half and the
// variance of what is left is halved; else it stays as it is.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::step {

/// Bounds of Conditions::scale.
inline constexpr double kLeastScale = 0.5, kMostScale = 3;

struct MeasuredStep {
  std::string name;  ///< of the job, for people
  Seconds measured;
  Seconds at_peak;  ///< what the step's FLOPs take at the peak of its devices: no run is faster
};

/// The step of a row at a scale, growing with it; with a time once per step, or what the row has.
using StepAtScale =
    std::function<Result<Seconds>(std::size_t row, double scale, std::optional<Seconds> fixed)>;

struct ScaleFit {
  double scale;
  std::optional<Seconds> fixed;    ///< Conditions::fixed, where it was fitted
  std::vector<Seconds> predicted;  ///< by row
  double residual;                 ///< mean |predicted / measured - 1|
  /// The interval of compute time: of one row ±5 %, since it says nothing of how rows differ; of
  /// several, 1.645 standard deviations of what is left, and not below 3 %. Half as much again to
  /// the slow side: real runs only get slower. A part that was fitted costs a degree of freedom.
  double fastest, slowest;
};

/// Fails, naming the row, where a step is faster than the peak of its devices, and where no scale
/// within the bounds gives it; a step that is longer may be by the part that does not scale, where
/// that is fitted.
/// REQUIRES: at least one row; times above zero.
Result<ScaleFit> fit_scale(std::span<const MeasuredStep> rows, const StepAtScale& step_at);

}  // namespace rehearse::step
