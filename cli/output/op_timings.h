// The table of measured operations.
#pragma once

#include <span>

#include "cli/output/value.h"
#include "profiler/trace/op_timing.h"

namespace rehearse::cli {

/// One row per timing. The screen has only the most important columns.
Value op_timing_rows(std::span<const trace::OpTiming> timings);

}  // namespace rehearse::cli
