// The critical path of a predicted step, cut into kinds of ops and of collectives.
#pragma once

#include "sim/program/attribution.h"
#include "strategies/step/step.h"

namespace rehearse::step {

struct StepPath {
  program::PathParts parts;
  program::PathTimes times;
};

/// The parts add up to the length of the run. REQUIRES: the step has its run.
StepPath path_of(const Step& step);

/// Adds waiting for samples, so that the parts add up to Step::time.
void add_input(const Step& step, StepPath& path);

}  // namespace rehearse::step
