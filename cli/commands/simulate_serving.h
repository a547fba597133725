// `rehearse simulate JOB.yaml` of a job with a section `serve`: predicts an inference server under a
// load.
#pragma once

#include "cli/commands/simulate_options.h"
#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

Result<Exit> simulate_serving(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
