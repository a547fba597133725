// From a layout to a job: one program per stage, in which compute ops have durations and
// collectives and sends wait to be priced or carried (models/job/lower.h).
#pragma once

#include <functional>

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "sim/graph/job.h"

namespace rehearse::strategies {

/// The time of a run of ops between two communications on one rank: what a cost model says.
using Price = std::function<Seconds(const workload::Op&)>;

struct JobOptions {
  /// Least time per kernel: the host launches them one after the other, so that a phase of a layer
  /// takes at least its kernels times this.
  Seconds host_per_kernel = Seconds::s(0);
  /// Once per step and rank: what no op stands for.
  Seconds fixed = Seconds::s(0);
};

Result<graph::Job> job_of(const workload::Layout& layout, const Price& price,
                          const JobOptions& options);

}  // namespace rehearse::strategies
