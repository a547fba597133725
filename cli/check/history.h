// A series of runs of one job: where its step time changed, and whether it stands too high now.
#pragma once

#include <string>
#include <vector>

#include "cli/check/finding.h"
#include "profiler/compare/change_points.h"
#include "profiler/compare/run.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct History {
  std::vector<std::string> sources;
  std::vector<double> levels;  ///< of the step, s
  compare::ChangePoints changes;
  CheckFindings findings;
};

/// The least series that has a history.
inline constexpr std::size_t kLeastHistory = 5;

/// A run's part in a series.
struct HistoryEntry {
  std::string source;
  double level;  ///< of the step, s
};

/// Judges the jump that the current segment began with and its drift since by `limit`, a rise.
/// Fails on a series too short. REQUIRES: runs of one job (compare::match_runs).
Result<History> judge_history(const std::vector<HistoryEntry>& runs, double limit);

/// Standard deviation of a run's level about the segment the newest run is in; 0 where the segment
/// is too short to tell.
double noise_between_runs(const History& history);

}  // namespace rehearse::cli
