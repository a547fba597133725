// History: a series of runs of one job, the changes of its step time, and a verdict on the newest.
#pragma once

#include <string>
#include <vector>

#include "cli/check/finding.h"
#include "profiler/compare/change_points.h"
#include "profiler/compare/run.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// A run's part in a series.
struct HistoryEntry {
  std::string source;     ///< for people
  double level;           ///< of the step, s
  std::string file = {};  ///< that it is in; empty: the source is one
  double allowed = 0;     ///< the rise that it was accepted with; 0: it was not
  std::string date = {};  ///< when it was; may be empty
};

struct History {
  std::vector<HistoryEntry> runs;
  compare::ChangePoints changes;
  CheckFindings findings;
};

/// The least series that has a history.
inline constexpr std::size_t kLeastHistory = 5;

/// Judges the jump that the current segment began with and its drift since by `limit`, a rise, or
/// by the largest that a run of the segment was accepted with: what was accepted is no news.
/// Fails on a series too short. REQUIRES: runs of one job (compare::match_runs).
Result<History> judge_history(const std::vector<HistoryEntry>& runs, double limit);

/// How much runs of the job differ, into the options of a comparison: the standard deviation of a
/// run's level about its segment, of the newest segment that is long enough to tell. Leaves them as
/// they are where none is.
void add_noise_between_runs(const History& history, compare::EffectOptions& options);

}  // namespace rehearse::cli
