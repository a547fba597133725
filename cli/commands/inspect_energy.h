// The energy section of `rehearse inspect`.
#pragma once

#include "cli/output/value.h"
#include "profiler/replay/energy.h"

namespace rehearse::cli {

/// Returns a row per board, with the caveats of its values.
Value energy_fields(const replay::Energy& energy);

}  // namespace rehearse::cli
