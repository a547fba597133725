// The sections of a job file that only its costs depend on: `provider`, `region`, `market`,
// `carbon`, `storage`, `spot` (docs/formats/job.md).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cost/whole_job.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

/// What may be rented where and how; each empty where the file does not say.
struct Rent {
  std::vector<std::string> providers, regions;
  std::vector<cost::Market> markets;
};

struct JobCosts {
  Rent rent;
  std::shared_ptr<const cost::CarbonHours> hours;  ///< null: none are given
  cost::Keeping keeping;
};

/// Paths count from `folder`. Fails where a file cannot be read; what is wrong in the sections is
/// recorded in the map's file.
Result<JobCosts> read_job_costs(const YamlMap& root, const std::filesystem::path& folder);

}  // namespace rehearse::cli
