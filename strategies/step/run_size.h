// The size of a run with every rank, counted without one.
#pragma once

#include <cstdint>

#include "sim/base/algorithm.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/program/program.h"

namespace rehearse::step {

/// Its cost is a count, converted into time on one core of the machine of docs/performance.md, so it
/// is the same everywhere.
struct RunSize {
  double ops = 0;
  double messages = 0;
  std::uint32_t ranks = 0;

  Seconds by_messages() const;  ///< predict() with all ranks
  Seconds on_simgrid() const;   ///< referee()
};

/// The size of a run of a step's program with these algorithms. Fails as job::lower does.
Result<RunSize> run_size(const program::Program& job, const Algorithms& algorithms,
                         const cluster::Cluster& cluster);

}  // namespace rehearse::step
