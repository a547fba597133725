// A predicted step with what is said beside it: its cost, what would make it fit, how far to go.
#pragma once

#include "cli/commands/step_result.h"

namespace rehearse::cli {

/// `step` is that of the file's job, at this fidelity.
PredictedJob predicted_job(JobFile file, step::Step step, step::Fidelity fidelity);

}  // namespace rehearse::cli
