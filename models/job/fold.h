// Shared by folding (lower.h) and lowering.
#pragma once

#include <vector>

#include "models/job/link_paths.h"
#include "models/job/lower.h"
#include "models/job/shared_links.h"
#include "models/job/symmetry.h"
#include "sim/base/time.h"

namespace rehearse::job {

/// A collective or a send that represents those of all ranks of its program.
struct Carried {
  Picoseconds before{0};      ///< until its messages flow: latencies, and other waits of its own
  Bytes bytes = Bytes::b(0);  ///< bytes of each of its concurrent messages
  std::uint32_t concurrent_set = 0;  ///< in Shared::concurrent sets, where there are bytes

  friend bool operator==(const Carried&, const Carried&) = default;
};

/// The ranks to run for all.
struct Folded {
  Symmetry symmetry;
  /// By run and op. Empty under the closed form, which prices communications itself.
  std::vector<std::vector<Carried>> carried = {};
  SharedLinks::Shared shared = {};
};

Result<LoweredJob> add(const program::Program& job, const cluster::Cluster& cluster,
                       const Rules& rules, const Folded& folded, LinkPaths& paths,
                       program::Assembly& onto);

/// Completes a job that was added to a graph of its own.
Result<LoweredJob> with_graph(LoweredJob lowered, program::Assembly onto);

/// The ranks of the job must be consistent, and fit the cluster.
Status check(const program::Program& job, const cluster::Cluster& cluster);

}  // namespace rehearse::job
