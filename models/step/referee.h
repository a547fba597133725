// A second opinion on a step: SimGrid with every rank and every message, beside our own messages
// under the same rules. What differs is contention that folding does not see: collectives of
// different kinds, and sends, on the same links at the same time.
//
// SimGrid shares no device, so that neither run slows computing down beside collectives: both are
// below what predict() says at message fidelity.
#pragma once

#include <cstdint>

#include "models/step/step.h"
#include "sim/base/result.h"

namespace rehearse::step {

/// How much there is to carry where every rank runs.
struct RunSize {
  double ops = 0;
  double messages = 0;
  std::uint32_t ranks = 0;

  /// What SimGrid takes for it, on one core of the machine of docs/performance.md: a count turned
  /// into time, the same everywhere.
  Seconds on_simgrid() const;
};

/// Without building any of it. REQUIRES: the job suits the cluster.
Result<RunSize> run_size(const graph::Job& job, const cluster::Cluster& cluster);

struct Refereed {
  Seconds simgrid;
  Seconds messages;  ///< by our own engine, folded as predict() does
};

/// Of a step as predict() has it. Fails where engine::run_on_simgrid does.
Result<Refereed> referee(const Step& step, const cluster::Cluster& cluster);

/// Of Refereed the second alone.
Result<Seconds> time_by_messages(const Step& step, const cluster::Cluster& cluster);

}  // namespace rehearse::step
