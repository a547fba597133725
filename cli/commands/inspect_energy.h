// The energy section of `rehearse inspect`.
#pragma once

#include "cli/output/value.h"
#include "profiler/replay/energy.h"

namespace rehearse::cli {

/// A row per board, with a word on what not to trust.
Value energy_fields(const replay::Energy& energy);

}  // namespace rehearse::cli
