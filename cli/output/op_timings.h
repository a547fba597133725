// The table of measured operations.
#pragma once

#include <span>

#include "cli/output/value.h"
#include "profiler/trace/op_timing.h"

namespace rehearse::cli {

/// A row each. The screen has the columns that matter most.
Value op_timing_rows(std::span<const trace::OpTiming> timings);

}  // namespace rehearse::cli
