// `rehearse simulate JOB.yaml --share-with OTHER.yaml` of two servers: both loads on the same GPUs.
#pragma once

#include "cli/commands/simulate_options.h"
#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Fails where the servers do not fit together, or differ in their GPUs.
Result<Exit> share_servers(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
