// An edited recording, for the commands that edit one: its options and its run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/recorded_input.h"
#include "cli/commands/recorded_slice.h"
#include "cli/commands/replay_job.h"
#include "cli/commands/sum_order.h"
#include "strategies/data_parallel.h"

namespace rehearse::cli {

struct WhatifOptions {
  ReplayRequest request;
  std::vector<std::vector<std::string>> named;  ///< by edit of named_edits()
  std::string input_pipeline;
  std::uint32_t batch = 0;  ///< samples per request of a rank; 0: a unit of the last stage
  std::string network;
  std::uint32_t data_parallel = 0;   ///< ranks; 0: as recorded
  std::optional<Bytes> bucket = {};  ///< of sums of gradients
  std::optional<SumOrder> sum_order = {};
};

/// Adds the options of edits, without those of the request.
void add_edits(CLI::App& command, WhatifOptions& options);
/// Ends the command with "wrong usage" on edits that lack another option.
void check_edits(const WhatifOptions& options);
bool has_edits(const WhatifOptions& options);

struct EditedJob {
  ReplayJob job;
  EditedRun edited;
  Estimate<Seconds> step;
  std::optional<FedBy> fed = {};       ///< by the file of an input pipeline
  std::vector<std::string> idle = {};  ///< edits without which every step takes as long
};

/// Reads and replays the recordings, unless that was done, and runs them edited, on the slice of the
/// request if it has one.
Result<EditedJob> run_edits(const WhatifOptions& options, const Globals& globals,
                            std::optional<ReplayJob> read = {});
Document whatif_document(const EditedJob& edited);

}  // namespace rehearse::cli
