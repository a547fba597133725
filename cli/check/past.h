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
