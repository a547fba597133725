// Options of `rehearse profile` that select steps, and the report of the recorded steps.
#pragma once

#include "cli/output/document.h"
#include "profiler/launch/launch.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// Adds --steps, --ring and --trigger. REQUIRES: `record` outlives the command.
void add_step_options(CLI::App& command, capture::Options& record);

/// Adds `steps` and `kept_steps` if steps were chosen, and a text on the steps that a trigger
/// named.
void add_steps(Document& document, const capture::LaunchReport& report);

}  // namespace rehearse::cli
