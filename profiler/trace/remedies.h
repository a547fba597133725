// What to record, or to change, so that a problem of a recording does not come again.
#pragma once

#include <string_view>

#include "profiler/trace/problems.h"

namespace rehearse::trace {

/// As an order, "record again with …"; empty for what does no harm.
std::string_view remedy_of(ProblemKind kind);

}  // namespace rehearse::trace
