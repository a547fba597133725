// What simulate shows of a step of a job file, in each format.
#pragma once

#include <string>

#include "cli/config/job_file.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "cost/step_account.h"
#include "sim/program/path_parts.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

/// A job file that has been predicted.
struct PredictedJob {
  JobFile file;
  step::Step step;
  cost::StepAccount account;
  step::Fidelity fidelity;
  std::vector<std::string> remedies;  ///< what would make it fit; empty where it does
  std::optional<double> steps_to_target = {};
  program::PathParts path = {};  ///< the critical path of the step
};

std::string step_text(const PredictedJob& job);
Json step_json(const PredictedJob& job);
/// "memory_per_device" of the JSON contract, of the stage that fills its device most.
Json memory_json(const memory::StageMemory& most);
/// A row per stage: ranks, layers, memory.
Table stage_table(const PredictedJob& job);

}  // namespace rehearse::cli
