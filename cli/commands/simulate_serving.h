// `rehearse simulate JOB.yaml` of a job with a section `serve`: predicts an inference server under a
// load.
#pragma once

#include "cli/commands/served_load.h"
#include "cli/commands/simulate_options.h"
#include "cli/globals.h"
#include "cli/output/document.h"
#include "sim/base/result.h"

namespace rehearse::cli {

Result<Exit> simulate_serving(const SimulateOptions& options, const Globals& globals);

/// All that `simulate` answers of a load but its curve. Fails if the load takes too long at another
/// rate.
Result<Document> serving_document(const ServedLoad& load);

/// `--share-with OTHER.yaml`: both loads on the same GPUs. Fails where the servers do not fit together, or differ in their GPUs.
Result<Exit> share_servers(const SimulateOptions& options, const Globals& globals);

}  // namespace rehearse::cli
