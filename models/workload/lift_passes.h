// Steps of several microbatches: one pass forward and backward after the other.
#pragma once

#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

struct Passes {
  std::size_t count = 1;
  Nanoseconds second{INT64_MAX};  ///< when the second pass began
};

/// Merges all passes into the first: units keep their place there and collect device ops and time
/// of all. Units of later passes only (adding to a gradient) are appended. Passes with different
/// forward parts belong to different networks: they stay separate, as one pass.
/// REQUIRES: `units` in order of start, paired.
Passes fold_passes(std::vector<Unit>& units);

}  // namespace rehearse::workload::lifting
