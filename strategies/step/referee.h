// A second opinion on a step: SimGrid with every rank and every message, compared with our own
// messages under the same rules. SimGrid does not model shared devices, so neither slows
// computation during collectives: both are below predict().
#pragma once

#include <cstdint>

#include "sim/base/result.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// The size of a run with every rank. Its cost is a count, converted into time on one core of the
/// machine of docs/performance.md, so it is the same everywhere.
struct RunSize {
  double ops = 0;
  double messages = 0;
  std::uint32_t ranks = 0;

  Seconds by_messages() const;  ///< predict() with all ranks
  Seconds on_simgrid() const;   ///< referee()
};

/// The size of the whole step, without a run. REQUIRES: predict() returned the step for this cluster.
Result<RunSize> run_size(const Step& step, const cluster::Cluster& cluster);

struct Refereed {
  Seconds simgrid;
  Seconds messages;  ///< of all ranks, by our own engine
};

/// Both times of a step that predict() returned with a timeline. Fails if engine::run_on_simgrid does.
Result<Refereed> referee(const Step& step, const cluster::Cluster& cluster);

/// Only the second time of Refereed.
Result<Seconds> time_by_messages(const Step& step, const cluster::Cluster& cluster);

}  // namespace rehearse::step
