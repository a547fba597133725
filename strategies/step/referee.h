// A second opinion on a step: SimGrid with every rank and every message, compared with our own
// messages under the same rules. SimGrid does not model shared devices, so neither slows
// computation during collectives: both are below predict().
#pragma once

#include "sim/base/algorithm.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/program/program.h"

namespace rehearse::step {

struct Refereed {
  Seconds simgrid;
  Seconds messages;  ///< of all ranks, by our own engine
};

/// Both times of a step's program with these algorithms. Fails if job::lower or
/// engine::run_on_simgrid does.
Result<Refereed> referee(const program::Program& job, const Algorithms& algorithms,
                         const cluster::Cluster& cluster);

/// Only the second time of Refereed.
Result<Seconds> time_by_messages(const program::Program& job, const Algorithms& algorithms,
                                 const cluster::Cluster& cluster);

}  // namespace rehearse::step
