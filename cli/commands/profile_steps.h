// Options of `rehearse profile` that select steps, and the report of the recorded steps.
#pragma once

#include "cli/output/document.h"
#include "profiler/launch/launch.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// --steps, --ring and --trigger. REQUIRES: `record` outlives the command.
void add_step_options(CLI::App& command, capture::Options& record);

/// `steps` and `kept_steps`, where steps were chosen, and those that a trigger named in words.
void add_steps(Document& document, const capture::LaunchReport& report);

}  // namespace rehearse::cli
