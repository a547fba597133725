// The critical path of a predicted step, cut into kinds of ops and of collectives.
#pragma once

#include "sim/program/path_parts.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// Adds up to Step::time, waiting for samples included.
program::PathParts path_parts(const Step& step);

}  // namespace rehearse::step
