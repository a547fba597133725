// The critical path of a predicted step, cut into kinds of ops and of collectives.
#pragma once

#include "sim/program/attribution.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// The parts add up to the length of the run, to 1e-3 of it where the step comes from runs with few
/// microbatches, which leave `times` empty.
struct StepPath {
  program::PathParts parts;
  program::PathTimes times;
};

/// REQUIRES: the step has its run or its path.
StepPath path_of(const Step& step);

/// The parts of the path with all microbatches, from those with few and with more; `further` as in
/// FewerMicrobatches.
program::PathParts path_of_whole(const program::PathParts& few, program::PathParts more,
                                 double further);

/// Adds waiting for samples, so that the parts add up to Step::time.
void add_input(const Step& step, StepPath& path);

}  // namespace rehearse::step
