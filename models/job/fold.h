// What folding (lower.h) and lowering share.
#pragma once

#include <vector>

#include "models/job/lower.h"
#include "models/job/symmetry.h"
#include "sim/base/time.h"

namespace rehearse::job {

/// The ranks to run for all.
struct Folded {
  Symmetry symmetry;
  /// By run and op: how long collectives and sends take. Empty under the closed form, which prices
  /// them itself.
  std::vector<std::vector<Picoseconds>> times = {};
};

Result<LoweredJob> lower(const graph::Job& job, const cluster::Cluster& cluster, const Rules& rules,
                         const Folded& folded);

/// What a rank says about others must fit the job, and the job the cluster.
Status check(const graph::Job& job, const cluster::Cluster& cluster);

}  // namespace rehearse::job
