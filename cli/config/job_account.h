// What a predicted job costs, from its prediction.
#pragma once

#include <optional>
#include <vector>

#include "cli/config/job_file.h"
#include "cost/step_account.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// Optimizer steps; nothing without a target. REQUIRES: samples that have tokens, where the target
/// is in tokens (read_job sees to it).
std::optional<double> steps_to(const std::optional<Target>& target, const workload::Layout& layout);

/// All devices of the cluster, by kind: those that the plan does not use are paid for and idle.
std::vector<cost::PoweredDevices> devices_of(const cluster::Cluster& cluster,
                                             const step::Step& step);

/// Of one step, at the file's place, with what the requests of its input cost. With carbon by the
/// hour and a target, of a mean step of the whole job.
cost::StepAccount account_of_step(const JobFile& file, const step::Step& step);

/// The day on which the program runs, by which prices are stale.
cost::Day today();

}  // namespace rehearse::cli
