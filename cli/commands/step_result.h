// The document of `rehearse simulate JOB.yaml`.
#pragma once

#include "cli/config/job_file.h"
#include "cli/globals.h"
#include "cli/output/document.h"
#include "cli/report/report.h"
#include "cli/report/single_changes.h"
#include "cost/step_account.h"
#include "strategies/step/path_parts.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

struct PredictedJob {
  JobFile file;
  step::Step step;
  cost::StepAccount account;
  step::Fidelity fidelity;
  std::vector<std::string> remedies;  ///< changes that would make it fit; empty if it fits
  std::optional<double> steps_to_target = {};
  step::StepPath path = {};                ///< the critical path of the step
  std::vector<SingleChange> changes = {};  ///< that shorten the step; empty if none were tried
  std::optional<Seconds> unchanged = {};   ///< the step without JobChanges, if there are any
};

Document step_document(const PredictedJob& job);
/// The key "memory_per_device" of the JSON contract, for the stage that fills its device most.
Json memory_json(const memory::StageMemory& most);
/// The memory as part of a sentence: "fits with 11.0 GiB to spare".
std::string memory_words(const memory::StageMemory& most);
/// "host-bound: launches take 4.17 ms a layer, kernels 1.90 ms"; empty if launches do not determine
/// most of the step.
std::string host_words(const step::Step& step);
/// What the regime of a step says of its interval, as part of a sentence; empty if nothing.
std::string regime_words(const step::Step& step);
/// Whether the peak rate of the devices is known: that of the reference core is no CPU's.
bool knows_peak(const step::Step& step);
/// "16 × a100_sxm4_40 + 8 × h100_sxm5_80"
std::string devices_words(const step::Step& step);
/// "assumed …", and notes of the file and of the account.
std::vector<std::string> notes_of(const PredictedJob& job);

// Details of a predicted job for the report page that are not in its document.

/// Tries single changes of the job, with progress. Fails if it is interrupted.
Status try_changes(PredictedJob& job, const Globals& globals);

/// REQUIRES: try_changes() was called.
ReportDetails step_details(const PredictedJob& job, const std::filesystem::path& job_file);

}  // namespace rehearse::cli
