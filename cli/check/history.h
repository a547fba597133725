// The history of a job: the changes of its step time over a series of runs, a verdict on the newest one,
// and a candidate against a store of accepted runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/check/finding.h"
#include "cli/check/run_store.h"
#include "cli/output/value.h"
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

struct Past {
  std::filesystem::path store;
  std::vector<HistoryEntry> entries = {};  ///< of the store, oldest first, without the candidate
  std::optional<compare::Run> baseline;    ///< at the current level; absent if no run has it
  std::size_t pooled = 0;                  ///< number of runs in the baseline
  bool known = false;                      ///< the candidate is in the store; `entries` excludes it
  std::optional<bool> accepted = {};  ///< whether the candidate was added; absent: not requested
  std::string why_not = {};           ///< reason for not adding it
};

/// The baseline is pooled from the runs since the last change. If there are too few runs to detect
/// a change, or the level drifts, it is the newest run. The variation between runs is added to
/// `effect`. `limit` is the rise by which the history is judged. Fails if the newest run is stored
/// without its steps and ops.
Result<Past> past_of(const std::filesystem::path& store, std::vector<KeptRun> runs, double limit,
                     compare::EffectOptions& effect);

/// Reads a store. A missing or empty store has no runs. A candidate that is already in it is
/// excluded.
Result<Past> read_past(const std::filesystem::path& store, const compare::Run* candidate,
                       double limit, compare::EffectOptions& effect);

/// "history   perf.history: 12 accepted runs; the baseline is 7 runs since c0ffee, of 2026-11-20",
/// and whether the candidate was accepted.
std::vector<std::string> past_lines(const Past& past);
Json past_json(const Past& past);

}  // namespace rehearse::cli
