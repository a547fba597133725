// Where the time of each rank goes in a run of a job.
#pragma once

#include <vector>

#include "models/job/lower.h"
#include "sim/graph/timeline.h"

namespace rehearse::job {

/// A partition of the step: at each instant the first of these that goes on. The parts add up to
/// the makespan.
struct Usage {
  Seconds compute = Seconds::s(0);
  /// Collectives from when the rank takes part, waiting for others included, sends, and waiting for
  /// receives.
  Seconds exposed_communication = Seconds::s(0);
  Seconds memory = Seconds::s(0);
  Seconds host = Seconds::s(0);
  Seconds idle = Seconds::s(0);

  friend bool operator==(const Usage&, const Usage&) = default;
};

/// By rank that was run.
std::vector<Usage> usage(const program::Program& job, const LoweredJob& lowered,
                         const graph::Timeline& timeline);

/// From when the last member of a collective comes until it has ended everywhere.
Seconds time_of(const Collective& collective, const graph::Timeline& timeline);

}  // namespace rehearse::job
