// The sections of a job file that only its costs depend on: `carbon`, `storage`, `spot`
// (docs/formats/job.md).
#pragma once

#include <filesystem>
#include <memory>

#include "cost/whole_job.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

struct JobCosts {
  std::shared_ptr<const cost::CarbonHours> hours;  ///< null: none are given
  cost::Keeping keeping;
};

/// Paths count from `folder`. Fails where a file cannot be read; what is wrong in the sections is
/// recorded in the map's file.
Result<JobCosts> read_job_costs(const YamlMap& root, const std::filesystem::path& folder);

}  // namespace rehearse::cli
