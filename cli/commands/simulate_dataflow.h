// `rehearse simulate` of a dataflow file.
#pragma once

#include "cli/commands/simulate_options.h"
#include "cli/globals.h"

namespace rehearse::cli {

/// Predicts one run. Fails with the mistakes of the file, and with options that it does not have.
Result<Exit> simulate_dataflow(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
