// Fits the scale of Conditions to measured steps, and with three or more also the fixed time:
// `rehearse calibrate job`.
//
// Steps grow with the scale, so one measured step determines it. With several steps, the sum of
// squared logarithms of predicted ÷ measured is minimized. Steps that differ, for example in their
// batch, show a part that does not grow with computing: input, host, per-step work of a framework.
// With three or more steps that part is fitted too, if their computing differs by half and the
// residual variance is halved; otherwise it is unchanged.
//
// The host's time per block (docs/concepts/host.md) is held. A step that launches determine says
// little about computing: its fit puts the error of the host's time into the scale.
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
  std::string name;  ///< label of the job
  Seconds measured;
  Seconds at_peak;        ///< time of the step's FLOPs at the peak of its devices: a lower bound
  double host_share = 0;  ///< of the predicted step: launches on the critical path
};

/// The step of a row at a scale, which increases with the scale; with a given fixed time, or the
/// row's own.
using StepAtScale =
    std::function<Result<Seconds>(std::size_t row, double scale, std::optional<Seconds> fixed)>;

struct ScaleFit {
  double scale;
  std::optional<Seconds> fixed;    ///< Conditions::fixed, where it was fitted
  std::vector<Seconds> predicted;  ///< by row
  double residual;                 ///< mean |predicted / measured - 1|
  /// The interval of compute time: for one row ±5 %, because it does not show the variation; for
  /// several, 1.645 standard deviations of the residuals, at least 3 %. 1.5 times that to
  /// the slow side, because real runs only get slower. A fitted part costs a degree of freedom.
  double fastest, slowest;
};

/// Fails, naming the row, if a step is faster than the peak of its devices, or if no scale within
/// the bounds gives it; if launches determine the predicted step, the error says so. A longer step is allowed if the part that does not scale is fitted.
/// REQUIRES: at least one row; times above zero.
Result<ScaleFit> fit_scale(std::span<const MeasuredStep> rows, const StepAtScale& step_at);

}  // namespace rehearse::step
