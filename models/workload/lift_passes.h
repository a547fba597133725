// Steps of several microbatches: one pass forward and backward after the other.
#pragma once

#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

struct Passes {
  std::size_t count = 1;
  Nanoseconds second{INT64_MAX};  ///< when the second pass began
};

/// Puts all passes into the first: units keep their place there and gather device ops and time of
/// all. What only later passes do (adding to a gradient) stands behind. Passes whose forward parts
/// differ are of different networks: they stay as they are, one pass.
/// REQUIRES: `units` in order of start, paired.
Passes fold_passes(std::vector<Unit>& units);

}  // namespace rehearse::workload::lifting
