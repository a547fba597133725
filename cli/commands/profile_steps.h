// rehearse profile: which steps are recorded, and what became of them.
#pragma once

#include <string>

#include "cli/output/json.h"
#include "profiler/launch/launch.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// --steps, --ring and --trigger. REQUIRES: `record` outlives the command.
void add_step_options(CLI::App& command, capture::Options& record);

/// Lines for people: how many, and those that a trigger named. Empty where all are recorded.
std::string steps_text(const capture::LaunchReport& report);

/// The keys `steps` and `kept_steps`, where steps were chosen.
void add_steps(Json& json, const capture::LaunchReport& report);

}  // namespace rehearse::cli
