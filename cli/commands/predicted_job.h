// PredictedJob: a predicted step with its cost, changes that would make it fit, and the remaining
// steps to the target.
#pragma once

#include <filesystem>
#include <string_view>

#include "cli/commands/job_changes.h"
#include "cli/commands/step_result.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// `step` is the predicted step of the file's job at this fidelity, and `path` its critical path.
PredictedJob predicted_job(JobFile file, step::Step step, step::StepPath path,
                           step::Fidelity fidelity);

/// How a job file is predicted; the defaults are the file's own cluster, and all of a device.
struct Prediction {
  std::filesystem::path cluster = {};
  std::string_view slice = {};
  step::Fidelity fidelity;
  bool unfold = false;
  bool counterfactuals = true;  ///< runs without each kind of communication
  bool timeline = true;         ///< as in step::PredictOptions
  JobChanges changes = {};
};
/// Predicts the job of a file, with the waits of its input pipeline.
Result<PredictedJob> predict_job(const std::filesystem::path& path, const Prediction& of);

}  // namespace rehearse::cli
