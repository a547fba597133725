// `rehearse plan JOB.yaml` of a job with a section `serve`: searches the settings of an inference
// server.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/globals.h"
#include "cli/planning/find_settings.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct PlanServingOptions {
  std::filesystem::path job_file, cluster;
  ServerObjective objective = ServerObjective::kGoodput;
  std::optional<serving::Framework> emit = {};
};

/// `search`: threads, progress, and where results are stored.
Result<Exit> plan_serving(const PlanServingOptions& options, strategies::SearchOptions search,
                          const Globals& globals);

}  // namespace rehearse::cli
