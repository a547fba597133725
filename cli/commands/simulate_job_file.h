// `rehearse simulate JOB.yaml`: predicts one step of a job file.
#pragma once

#include "cli/commands/simulate_options.h"
#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

Result<Exit> simulate_job_file(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
