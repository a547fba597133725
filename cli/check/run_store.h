// The store of accepted runs: one SQLite file, with whose runs later candidates are compared.
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
  std::string name;                 ///< for people, such as the commit
  std::string date;                 ///< of acceptance, UTC
  double level = 0;                 ///< of the step time, s
  double allowed = 0;               ///< the step time rise that it was accepted with
  std::uint64_t sum = 0;            ///< checksum of all measurements: equal for the same run
  std::optional<compare::Run> run;  ///< present for the newest runs
};

/// The number of runs that keep their steps and ops, the most steps that each of them keeps, and
/// the number of runs that keep only their level. Older runs are deleted.
inline constexpr std::size_t kKeptWhole = 10;
inline constexpr std::size_t kKeptSteps = 200;
inline constexpr std::size_t kKeptLevels = 1000;

/// Whether the file identifies itself as a run store.
bool is_run_store(const std::filesystem::path& path);

/// The run in the form in which it is stored: its newest kKeptSteps steps, without their positions
/// in the recording.
KeptRun kept(compare::Run run, std::string name, double allowed);

/// Returns all runs, oldest first. Fails if the file has another version or is damaged.
Result<std::vector<KeptRun>> read_runs(const std::filesystem::path& path);

/// Adds a run, and creates the store if there is none. The file gets all of the run or nothing,
/// even if the process is killed; other writers wait. Returns false if the store has this run
/// already. REQUIRES: a run of kept().
Result<bool> add_run(const std::filesystem::path& path, const KeptRun& run);

}  // namespace rehearse::cli
