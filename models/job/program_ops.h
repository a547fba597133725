// ProgramOps: the data of a job's run that attribution (sim/program/attribution.h) needs.
#pragma once

#include <vector>

#include "models/job/lower.h"
#include "sim/program/lowered_ops.h"

namespace rehearse::job {

class ProgramOps : public program::LoweredOps, public program::Explanations {
 public:
  /// The intervals are those of the run, for computing, and for communication and copies whose
  /// origin has none of its own. REQUIRES: the first three outlive this object.
  ProgramOps(const program::Program& job, const LoweredJob& lowered,
             const graph::Timeline& timeline, program::Interval computing = {},
             program::Interval links = {});

  std::vector<program::PathShare> shares(OpId op) const override;
  std::uint64_t alike(OpId op) const override;
  std::optional<Picoseconds> alone(OpId op) const override;
  program::PathShare slowed(OpId op) const override;

 private:
  program::PathShare message(OpId op) const;
  program::PathShare plain(const Made& made, program::PartKind kind, std::string_view part) const;
  /// The provenance of a collective: that of its calibration. Uncalibrated messages depend only on
  /// the links of the cluster.
  Provenance provenance_of(const Made& made) const;

  const program::Program& job_;
  const LoweredJob& lowered_;
  const program::Interval computing_, links_;
};

/// What occupies each rank that is run, from time zero to the end of the run.
std::vector<program::Occupancy> occupancy(const program::Program& job, const LoweredJob& lowered,
                                          const graph::Timeline& timeline);

/// The critical path of the run, with the intervals of ProgramOps.
program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, program::Interval computing,
                              program::Interval links);

/// The time from the arrival of the last member of a collective until it has ended everywhere.
Seconds time_of(const Collective& collective, const graph::Timeline& timeline);

}  // namespace rehearse::job
