// The rate of a pipeline by simulation.
#pragma once

#include <vector>

#include "models/input/pipeline.h"

namespace rehearse::input {

struct Flow {
  /// Units of the last stage per second once the queues have settled. The interval is that of the
  /// mean over ten parts of the run: it covers the file's randomness, not errors in the file.
  Estimate<double> units_per_s;
  /// The share of a unit's samples that is present when the last stage begins it: less than
  /// all if a quorum goes on without the others.
  double filled = 1;
  std::vector<double> busy = {};      ///< share of the threads of each stage that work or read
  std::optional<Seconds> epoch = {};  ///< from the start of the workers to the last unit
};

/// Fails where a unit of the last stage takes too many ops, or too long, to run enough of them.
Result<Flow> simulate(const Pipeline& pipeline);

/// The time from the start of the workers, with empty queues, until this many units of the last
/// stage are ready. Fails if that takes too many ops.
Result<Seconds> time_to_first(const Pipeline& pipeline, double units);

/// The times at which the units of an epoch are ready (or used up by the accelerator, where there is
/// one), rising, from the start of the workers. Fails if the epoch has no length or too many units.
Result<std::vector<Seconds>> arrivals(const Pipeline& pipeline);

/// The cost of the requests of a unit of the last stage, summed over the sources.
Usd request_price_of(const Pipeline& pipeline);

}  // namespace rehearse::input
