// History: a series of runs of one job, the changes of its step time, and a verdict on the newest.
#pragma once

#include <string>
#include <vector>

#include "cli/check/finding.h"
#include "profiler/compare/change_points.h"
#include "profiler/compare/run.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// One run of a series.
struct HistoryEntry {
  std::string source;     ///< for people
  double level;           ///< of the step time, s
  std::string file = {};  ///< containing the run; empty: the same as `source`
  double allowed = 0;     ///< the rise that it was accepted with; 0: none
  std::string date = {};  ///< of the run; may be empty
};

struct History {
  std::vector<HistoryEntry> runs;
  compare::ChangePoints changes = {};
  CheckFindings findings = {};
};

/// The length of the shortest series that has a history.
inline constexpr std::size_t kLeastHistory = 5;

/// Judges the jump at which the current segment began and the drift since then. The limit is the
/// rise `limit`, or the largest rise that a run of the segment was accepted with: an accepted rise
/// is not reported again. Fails if the series is too short. REQUIRES: runs of one job
/// (compare::match_runs).
Result<History> judge_history(const std::vector<HistoryEntry>& runs, double limit);

/// Sets in `options` how much runs of the job differ: the standard deviation of a run's level about
/// its segment, from the newest segment that is long enough. Leaves `options` unchanged if there is
/// none.
void add_noise_between_runs(const History& history, compare::EffectOptions& options);

}  // namespace rehearse::cli
