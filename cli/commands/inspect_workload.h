// `rehearse inspect --workload`: the layers of a recorded step.
#pragma once

#include "cli/commands/replay_job.h"
#include "cli/globals.h"
#include "cli/output/document.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Lifts the requested ranks, and writes the layers.
Result<Exit> inspect_workload(const ReplayRequest& request, const Globals& globals);

/// Adds the plan that the ranks were recorded under, with its evidence, or why it is unknown.
void show_recorded_plan(const trace::Trace& trace, Document& document);

}  // namespace rehearse::cli
