// What a collective takes when it is timed inside a framework instead of by nccl-tests: the call
// from Python, the launch that nothing hides, caches that are cold. Added to every call; about the
// same at all sizes, so that large messages hardly notice.
//
// Known from three published sources, all of A100 or an unnamed GPU; hosts differ by more than the
// middle half of these rows, so intervals are wide and provenance is extrapolated.
#pragma once

#include <span>
#include <string>

#include "models/comm/calibration.h"
#include "models/comm/collective_cost.h"
#include "models/comm/fit.h"

namespace rehearse::comm {

/// A call that was timed inside a framework.
struct TimedCall {
  MeasuredRow row;
  Seconds price;  ///< as nccl-tests would time it
  double weight;  ///< sources of many rows should not outvote the others
};

/// Quantiles of measured less priced over calls below 32 MiB, above which it drowns in errors of
/// bandwidth. Fails on fewer than three such calls.
Result<FrameworkTiming> fit_framework_timing(Fitted about, std::span<const TimedCall> calls);

/// That of the program; read once, kept for its life.
const FrameworkTiming& framework_timing();

/// The price with the overhead of a call. Errors of both are taken as independent: half-widths add
/// by squares.
Price in_framework(Price price, const FrameworkTiming& timing);

}  // namespace rehearse::comm
