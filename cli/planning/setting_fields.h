// Settings of an inference server, as `plan` and `recommend` show them.
#pragma once

#include "cli/config/server_flags.h"
#include "cli/output/value.h"
#include "cli/planning/server_space.h"

namespace rehearse::cli {

/// The flags of the job's settings, under the names of its server. Fails for a device that is not in
/// the catalog.
Result<std::vector<ServerFlag>> flags_of(const ServeFile& job);
/// "max_num_batched_tokens 8192, max_num_seqs 64"
std::string flag_words(const std::vector<ServerFlag>& flags);

/// `plan`, `flags` and `prefill`, as keys that a job file takes, and `scaling_rule`, its `scaling`.
Result<Value> setting_fields(const ServeFile& job);

}  // namespace rehearse::cli
