// Compares a candidate with a store of accepted runs: its baseline level, and the series that it
// continues.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/check/history.h"
#include "cli/check/run_store.h"
#include "cli/output/value.h"
#include "profiler/compare/run.h"

namespace rehearse::cli {

struct Past {
  std::filesystem::path store;
  std::vector<HistoryEntry> entries;     ///< of the store, oldest first, without the candidate
  std::optional<compare::Run> baseline;  ///< at the current level; nothing where it has no run
  std::size_t pooled = 0;                ///< how many runs the baseline is made of
  bool known = false;                    ///< the candidate is in the store; `entries` excludes it
  std::optional<bool> accepted = {};  ///< whether the candidate was added; nothing: not asked for
  std::string why_not = {};           ///< it was not
};

/// The baseline is pooled from the runs since the last change; of runs too few to tell one, and of
/// a level that drifts, it is the newest run. What runs differ by goes into `effect`. `limit`: the
/// rise that a history is judged by. Fails where the newest run is not whole.
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
