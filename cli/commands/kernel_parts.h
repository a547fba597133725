// Kernels of a recording by kind, as origins of its program.
#pragma once

#include <vector>

#include "profiler/replay/lower.h"

namespace rehearse::cli {

/// Sets the origin of each kernel: "matrix products", "norms", "other kernels", from the operator
/// that launched it.
void name_kernels(const std::vector<replay::Recording>& recordings,
                  replay::RecordedProgram& program);

}  // namespace rehearse::cli
