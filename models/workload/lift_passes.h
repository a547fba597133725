// The passes of a recorded step: microbatches, and the chunks of an interleaved pipeline stage.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

struct Passes {
  std::size_t microbatches = 1;
  std::uint32_t chunks = 1;
  /// Starts of the backward units of later microbatches than the first, ascending.
  std::vector<Nanoseconds> later = {};
};

/// Merges all microbatches into the first: units keep their place there and collect device ops and
/// time of all. Units of later ones only (adding to a gradient) are appended. Sets Unit::chunk.
/// Microbatches with different forward parts belong to different networks: they stay separate, as
/// one pass. REQUIRES: `units` in order of start, paired.
Passes fold_passes(std::vector<Unit>& units);

}  // namespace rehearse::workload::lifting
