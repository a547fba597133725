// The additional time of a collective inside a framework relative to nccl-tests: the call
// from Python, an exposed launch, cold caches. Added to every call; about the
// same at all sizes, so that it hardly affects large messages.
//
// Known from three published sources, all of A100 or an unnamed GPU. Hosts differ by more than the
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
