// Remedies for problems of a recording: data to record, or settings to change.
#pragma once

#include <string_view>

#include "profiler/trace/problems.h"

namespace rehearse::trace {

/// As an instruction, "record again with …"; empty for harmless problems.
std::string_view remedy_of(ProblemKind kind);

}  // namespace rehearse::trace
