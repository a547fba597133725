// The document of two jobs that share devices: the slowdown of each, by cause.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/globals.h"
#include "models/sharing/tenants.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct SharedJob {
  std::string name;
  Estimate<Seconds> alone;                     ///< predicted or replayed without the other job
  sharing::TenantStep step;                    ///< when run together with the other
  std::optional<Estimate<Bytes>> memory = {};  ///< of the fullest device, with both jobs
};

struct SharedJobs {
  std::string devices;  ///< "2 × a100_sxm4_80"
  sharing::Sharing sharing;
  std::vector<SharedJob> jobs;
  std::optional<Bytes> usable = {};  ///< memory of that device
  std::vector<std::string> notes = {};
};

/// Writes the result, and a page about these inputs if `report` names one.
Status write_shared(const Globals& globals, std::string_view command, SharedJobs jobs,
                    const std::filesystem::path& report, std::vector<std::filesystem::path> inputs);

}  // namespace rehearse::cli
