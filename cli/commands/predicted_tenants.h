// `rehearse simulate JOB.yaml --share-with OTHER.yaml`: two jobs that share devices.
#pragma once

#include "cli/commands/simulate_options.h"
#include "cli/globals.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Places both jobs on the devices of the first, rank r of each on device r. Fails with one line if
/// they do not fit: other devices, more devices, or more memory than there is.
Result<Exit> share_predicted(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
