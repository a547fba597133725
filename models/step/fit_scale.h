// The scale of Conditions from measured steps: `rehearse calibrate job`.
//
// Steps grow with the scale, so that one measured step decides it; of several, the least sum of
// squared logarithms of predicted ÷ measured does.
#pragma once

#include <functional>
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

/// The step of a row at a scale, growing with it.
using StepAtScale = std::function<Result<Seconds>(std::size_t row, double scale)>;

struct ScaleFit {
  double scale;
  std::vector<Seconds> predicted;  ///< by row
  double residual;                 ///< mean |predicted / measured - 1|
  /// The interval of compute time: of one row ±5 %, since it says nothing of how rows differ; of
  /// several, 1.645 standard deviations of what is left, and not below 3 %. Half as much again to
  /// the slow side: real runs only get slower.
  double fastest, slowest;
};

/// Fails, naming the row, where a step is faster than the peak of its devices, and where no scale
/// within the bounds gives it. REQUIRES: at least one row; times above zero.
Result<ScaleFit> fit_scale(std::span<const MeasuredStep> rows, const StepAtScale& step_at);

}  // namespace rehearse::step
