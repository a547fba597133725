// How fast a pipeline is, by running it.
#pragma once

#include <vector>

#include "models/input/pipeline.h"

namespace rehearse::input {

struct Flow {
  /// Units of the last stage per second once the queues have settled. The interval is that of the
  /// mean over ten parts of the run: of what is random in the file, not of what is wrong in it.
  Estimate<double> units_per_s;
  /// Of the samples of a unit of the last stage, the share that is there when it begins: less than
  /// all of them where a quorum goes on without the others.
  double filled = 1;
  std::vector<double> busy;           ///< share of the threads of each stage that work or read
  std::optional<Seconds> epoch = {};  ///< from the start of the workers to the last unit
};

/// Fails where a unit of the last stage takes too many ops, or too long, to run enough of them.
Result<Flow> simulate(const Pipeline& pipeline);

/// From the start of the workers, with empty queues, to the moment when so many units of the last
/// stage are there. Fails where that is too many ops to be run beside other work.
Result<Seconds> time_to_first(const Pipeline& pipeline, double units);

/// What the requests of a unit of the last stage cost, summed over the sources.
Usd request_price_of(const Pipeline& pipeline);

}  // namespace rehearse::input
