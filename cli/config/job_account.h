// Energy, cost and carbon of a predicted job.
#pragma once

#include <optional>
#include <vector>

#include "cli/config/job_file.h"
#include "cost/step_account.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// The number of optimizer steps; nothing without a target. REQUIRES: if the target is in tokens,
/// samples have tokens (read_job checks it).
std::optional<double> steps_to(const std::optional<Target>& target, const workload::Layout& layout);

/// All devices of the cluster, by kind. Devices that the plan does not use are paid for and idle.
std::vector<cost::PoweredDevices> devices_of(const cluster::Cluster& cluster,
                                             const step::Step& step);

/// The account of one step in the file's region, including the storage requests of its input. With
/// hourly carbon intensity and a target, it is the account of a mean step of the whole job.
cost::StepAccount account_of_step(const JobFile& file, const step::Step& step);

/// The day on which the program runs, which determines whether prices are stale.
cost::Day today();

}  // namespace rehearse::cli
