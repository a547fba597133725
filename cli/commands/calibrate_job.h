// The command `rehearse calibrate job`: fits conditions to measured steps.
#pragma once

#include "cli/commands/commands.h"

namespace rehearse::cli {

void add_calibrate_job(CLI::App& calibrate, Action& action);

}  // namespace rehearse::cli
