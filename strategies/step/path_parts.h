// The critical path of a predicted step, cut into kinds of ops and of collectives.
#pragma once

#include "sim/program/path_parts.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// The parts add up to Step::time, including waiting for samples; to 1e-3 of it where the step comes
/// from runs with few microbatches.
program::PathParts path_parts(const Step& step);

}  // namespace rehearse::step
