// PredictedJob: a predicted step with its cost, changes that would make it fit, and the remaining
// steps to the target.
#pragma once

#include "cli/commands/step_result.h"

namespace rehearse::cli {

/// `step` is the predicted step of the file's job at this fidelity.
PredictedJob predicted_job(JobFile file, step::Step step, step::Fidelity fidelity);

}  // namespace rehearse::cli
