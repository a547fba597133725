// The document of two jobs that share devices: the slowdown of each, by cause.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/run_answer.h"
#include "models/sharing/tenants.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct SharedJob {
  std::string name;
  Estimate<Seconds> alone;                     ///< predicted or replayed without the other job
  sharing::TenantStep step = {};               ///< when run together with the other
  std::optional<Estimate<Bytes>> memory = {};  ///< of the fullest device, with both jobs
};

struct SharedJobs {
  std::string devices;  ///< "2 × a100_sxm4_80"
  sharing::Sharing sharing;
  std::vector<SharedJob> jobs;
  std::optional<Bytes> usable = {};  ///< memory of that device
  std::vector<std::string> notes = {};
};

/// Runs both tenants together, which sets the steps of `jobs`, and writes the requested files and
/// the document. `show` draws the last period of the first job. `step_of`: as in share_devices().
Result<Exit> answer_shared(const Globals& globals, std::string_view command, const RunFiles& files,
                           std::vector<std::filesystem::path> inputs, SharedJobs jobs,
                           const std::vector<sharing::Tenant>& tenants,
                           const std::function<void(const graph::Timeline&, TimelineSink&)>& show,
                           const sharing::StepOf& step_of = {});

}  // namespace rehearse::cli
