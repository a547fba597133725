// Where the time of the whole steps of a simulated run goes.
#pragma once

#include <string>
#include <vector>

#include "profiler/replay/lower.h"
#include "sim/base/units.h"
#include "sim/graph/critical_path.h"
#include "sim/graph/timeline.h"

namespace rehearse::replay {

/// A partition of the time of a rank's whole steps by what its devices do, or, while they idle, by
/// what keeps them waiting. The parts add up to `total`. Where a rank has no device, its host's
/// work is its compute.
struct Breakdown {
  Seconds total = Seconds::s(0);
  Seconds compute = Seconds::s(0);  ///< kernels run (whatever runs beside them)
  Seconds exposed_communication =
      Seconds::s(0);                   ///< only collectives run, or ranks wait for others
  Seconds memory = Seconds::s(0);      ///< only copies and sets run
  Seconds input = Seconds::s(0);       ///< idle: the host loads samples
  Seconds host_bound = Seconds::s(0);  ///< idle: the host has not launched the next op
  Seconds unexplained_wait =
      Seconds::s(0);                 ///< idle: a blocking call waits for nothing that was recorded
  Seconds profiler = Seconds::s(0);  ///< idle: the host does the profiler's work
  Seconds idle = Seconds::s(0);      ///< idle for another reason
};

/// Averages over ranks and whole steps: the partition of one step.
Breakdown break_down(const ReplayGraph& replay, const graph::Timeline& timeline);

/// The partition of each whole step, by rank and in order of time.
std::vector<std::vector<Breakdown>> break_down_steps(const ReplayGraph& replay,
                                                     const graph::Timeline& timeline);

/// The recording itself as a timeline of the graph, for breaking down what was measured: device ops
/// and the bounds of steps at their recorded times, without causes.
graph::Timeline recorded_timeline(const std::vector<Recording>& recordings,
                                  const ReplayGraph& replay);

/// One name on the critical path, with the time it accounts for in an average whole step.
struct PathShare {
  graph::Category category;
  std::string name;
  Seconds time;
};

struct CriticalPath {
  std::vector<Seconds> by_category;  ///< indexed by graph::Category; of an average whole step
  std::vector<PathShare> top;        ///< largest first
};

/// The chain of causes that ends the last whole step of the rank that finishes last, from the start
/// of that rank's first whole step on.
struct CriticalSteps {
  std::vector<graph::PathStep> path;  ///< clipped to the window
  std::size_t steps = 0;              ///< how many whole steps it covers
};
CriticalSteps find_critical_steps(const ReplayGraph& replay, const graph::Timeline& timeline);

/// The same, summed up per category and per name.
CriticalPath find_critical_path(const ReplayGraph& replay, const graph::Timeline& timeline,
                                std::size_t top);

}  // namespace rehearse::replay
