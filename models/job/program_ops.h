// ProgramOps: the data of a job's run that attribution (sim/program/attribution.h) needs.
#pragma once

#include <unordered_map>
#include <vector>

#include "models/job/lower.h"
#include "sim/graph/critical_path.h"
#include "sim/program/lowered_ops.h"

namespace rehearse::job {

class ProgramOps : public program::LoweredOps {
 public:
  /// As LoweredOps.
  ProgramOps(const program::Program& job, const LoweredJob& lowered,
             const graph::Timeline& timeline, program::Interval computing = {},
             program::Interval links = {});

  OpId last_arrival(OpId op) const override;

 protected:
  /// The provenance of a collective is that of its calibration. Uncalibrated messages depend only
  /// on the links of the cluster.
  Provenance provenance_of(const Made& made, Provenance share) const override;

 private:
  const program::Program& job_;
  const LoweredJob& lowered_;
  std::unordered_map<std::size_t, OpId> last_arrival_;  // of members that arrive earlier
};

/// Consecutive ranks of equal occupancy, from time zero to the end of the run.
struct RankRange {
  std::uint32_t first;
  std::uint32_t count;
  program::Occupancy occupancy;

  friend bool operator==(const RankRange&, const RankRange&) = default;
};
/// All ranks of the job, also those that one rank represents.
std::vector<RankRange> occupancy(const program::Program& job, const LoweredJob& lowered,
                                 const graph::Timeline& timeline);
/// The mean over ranks: exactly the occupancy of each if all are equal.
program::Occupancy mean(const std::vector<RankRange>& ranges);

/// The critical path of the run.
std::vector<graph::PathStep> critical_path(const program::Program& job, const LoweredJob& lowered,
                                           const graph::Timeline& timeline);
/// Its parts, with the intervals of LoweredOps.
program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, program::Interval computing,
                              program::Interval links);

/// The time from the arrival of the last member of a collective until it has ended everywhere.
Seconds time_of(const Collective& collective, const graph::Timeline& timeline);

}  // namespace rehearse::job
