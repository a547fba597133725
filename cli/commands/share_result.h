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
  Estimate<Seconds> alone;                     ///< as predicted or replayed without the other
  sharing::TenantStep step;                    ///< as run beside it
  std::optional<Estimate<Bytes>> memory = {};  ///< of the device that is fullest with both
};

struct SharedJobs {
  std::string devices;  ///< "2 × a100_sxm4_80"
  sharing::Sharing sharing;
  std::vector<SharedJob> jobs;
  std::optional<Bytes> usable = {};  ///< memory of that device
  std::vector<std::string> notes = {};
};

/// As the result, and as a page where `report` names one, of these inputs.
Status write_shared(const Globals& globals, std::string_view command, SharedJobs jobs,
                    const std::filesystem::path& report, std::vector<std::filesystem::path> inputs);

}  // namespace rehearse::cli
