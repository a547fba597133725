// The additional time of a collective inside a framework relative to nccl-tests: the call from
// Python, an exposed launch, cold caches. It is added to every call and is about the same at all
// sizes, so it hardly affects large messages.
//
// Known from three published sources, all of A100 or an unnamed GPU. Hosts differ by more than the
// middle half of these rows, so intervals are wide and provenance is extrapolated.
#pragma once

#include "models/comm/calibration.h"
#include "sim/base/estimate.h"

namespace rehearse::comm {

/// The timing that ships with the program; read once and kept for its life.
const FrameworkTiming& framework_timing();

/// The time with the overhead of a call. The errors of both are taken as independent, so their
/// half-widths add in quadrature.
Estimate<Seconds> in_framework(Estimate<Seconds> t, const FrameworkTiming& timing);

}  // namespace rehearse::comm
