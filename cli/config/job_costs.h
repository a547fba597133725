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

/// The offers, regions and markets that may be rented; each is empty if the file does not name any.
struct Rent {
  std::vector<std::string> providers, regions;
  std::vector<cost::Market> markets = {};
};

struct JobCosts {
  Rent rent;
  std::shared_ptr<const cost::CarbonHours> hours;  ///< null: none are given
  cost::Keeping keeping = {};
};

/// The instances that the section `cluster` names; none if it names other devices too.
cost::Place place_of(const YamlMap& root);

/// Paths are relative to `folder`. Fails if a file cannot be read; mistakes in the sections are
/// recorded in the map's file.
Result<JobCosts> read_job_costs(const YamlMap& root, const std::filesystem::path& folder);

}  // namespace rehearse::cli
