// `rehearse recommend JOB.yaml` of a job with a section `serve`: the instances to rent for a server,
// and its settings.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/commands/shared_work.h"
#include "cli/config/job_file.h"
#include "cli/globals.h"
#include "cost/recommend.h"

namespace rehearse::cli {

struct RecommendServingOptions {
  std::filesystem::path job_file;
  std::optional<Target> target;  ///< in tokens; absent: a million
};

/// Places and markets that `wish` does not have are those of the file.
Result<Exit> recommend_serving(const RecommendServingOptions& options, cost::Wish wish,
                               const Globals& globals, SharedWork& shared);

}  // namespace rehearse::cli
