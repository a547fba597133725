// How measured operations are shown.
#pragma once

#include <span>

#include "cli/output/json_value.h"
#include "cli/output/table.h"
#include "profiler/trace/op_timing.h"

namespace rehearse::cli {

/// One row each. `all`: every column, for programs.
Table op_timing_table(std::span<const trace::OpTiming> timings, bool all);

/// An array with an object for each.
Json op_timing_json(std::span<const trace::OpTiming> timings);

}  // namespace rehearse::cli
