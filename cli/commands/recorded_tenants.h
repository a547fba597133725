// Replays two recordings that share devices (`--share-with`).
#pragma once

#include <string_view>

#include "cli/commands/replay_job.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// A run of the recording, as recorded or edited, with its step time when it runs alone.
struct RecordedTenant {
  const ReplayJob& job;
  const ReplayRun& run;
  Estimate<Seconds> alone;
};

/// Places rank r of both runs on device r. Reads the other recording, runs both, and writes the
/// result, and the timeline of the first if the request asks for one. Fails with one line if the
/// recordings are of different GPUs.
Result<Exit> share_recorded(const RecordedTenant& own, const ReplayRequest& request,
                            std::string_view command, const Globals& globals);

}  // namespace rehearse::cli
