// Attributes the time of the whole steps of a replayed run (sim/program/attribution.h).
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/critical_path.h"
#include "sim/graph/timeline.h"
#include "sim/program/lowered_ops.h"

namespace rehearse::replay {

/// The properties of a replay that attribution needs.
class ReplayOps : public program::LoweredOps {
 public:
  /// REQUIRES: the arguments outlive this object.
  ReplayOps(const ReplayGraph& replay, const graph::Timeline& timeline,
            program::Interval interval = {});

  std::optional<OpId> cause(OpId op) const override;
  /// The threads of a rank without a device are its device.
  bool on_device(OpId op) const override;

 protected:
  bool without_device(std::uint32_t run) const override {
    return !replay_.program.replays[run].has_device;
  }

 private:
  const ReplayGraph& replay_;
  std::unordered_map<std::size_t, OpId> ask_of_;  // by the wait for a batch
};

/// The occupancy of an average rank in an average whole step. If a rank has no device, its host's
/// work is its compute.
program::Occupancy occupancy(const ReplayGraph& replay, const graph::Timeline& timeline);

/// The same of each whole step, by rank and in order of time.
std::vector<std::vector<program::Occupancy>> occupancy_of_steps(const ReplayGraph& replay,
                                                                const graph::Timeline& timeline);

/// The recording itself as a timeline of the graph, to break down the measurement: device ops
/// and the bounds of steps at their recorded times, without causes.
graph::Timeline recorded_timeline(const std::vector<Recording>& recordings,
                                  const ReplayGraph& replay);

/// The chain of causes that ends the last whole step of the rank that finishes last, from the start
/// of that rank's first whole step on.
struct CriticalSteps {
  std::vector<graph::PathStep> path;  ///< clipped to the window
  std::size_t steps = 0;              ///< how many whole steps it covers
};
CriticalSteps find_critical_steps(const ReplayGraph& replay, const graph::Timeline& timeline);

}  // namespace rehearse::replay
