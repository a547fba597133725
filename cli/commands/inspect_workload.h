// `rehearse inspect --workload`: the layers of a recorded step.
#pragma once

#include "cli/commands/replay_job.h"
#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Lifts the first requested rank, and writes its layers.
Result<Exit> inspect_workload(const ReplayRequest& request, const Globals& globals);

}  // namespace rehearse::cli
