// The store of accepted runs, one SQLite file with which later candidates are compared.
// docs/formats/history.md describes the tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiler/compare/run.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct KeptRun {
  std::string name;                 ///< as people call it: of a commit, say
  std::string date;                 ///< when it was accepted, UTC
  double level = 0;                 ///< of its step, s
  double allowed = 0;               ///< the rise of the step that it was accepted with
  std::uint64_t sum = 0;            ///< of all that was measured: the same run has the same
  std::optional<compare::Run> run;  ///< of the newest ones
};

/// How many runs are kept with their steps and ops, of how many steps each at most, and how many
/// with their level alone. What is older goes.
inline constexpr std::size_t kKeptWhole = 10;
inline constexpr std::size_t kKeptSteps = 200;
inline constexpr std::size_t kKeptLevels = 1000;

/// Whether a file says of itself that it is such a store.
bool is_run_store(const std::filesystem::path& path);

/// A run to be kept: its newest kKeptSteps steps, without where in its recording they were.
KeptRun kept(compare::Run run, std::string name, double allowed);

/// All runs, oldest first. Fails on a file of another version and on a damaged one.
Result<std::vector<KeptRun>> read_runs(const std::filesystem::path& path);

/// Adds a run, and makes the store where there is none. All of it or nothing is in the file then,
/// whenever the process ends; others that write at the same time wait. False where that very run is
/// there already. REQUIRES: a run of kept().
Result<bool> add_run(const std::filesystem::path& path, const KeptRun& run);

}  // namespace rehearse::cli
