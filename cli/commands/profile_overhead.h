// Measures the overhead of recording by running a program with and without it.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "profiler/launch/launch.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// A ratio with where it may lie.
struct Spread {
  double value;
  double low;
  double high;
};

/// The steps that a recording marks: of its first rank that marks any, without the first fifth
/// (at least one), which warm up.
struct MeasuredSteps {
  std::vector<Seconds> steps;  ///< sorted; never empty
  double ranges_per_step;      ///< of all threads
  double calls_per_step;       ///< of the CUDA runtime and driver
};

/// Nothing where no steps are marked, or too few to leave any out.
Result<std::optional<MeasuredSteps>> measured_steps(const std::filesystem::path& folder);

/// One run with recording and one without.
struct RunPair {
  Seconds wall_recorded;
  Seconds wall_plain;
  std::optional<MeasuredSteps> recorded;
  std::optional<MeasuredSteps> plain;
};

struct Overhead {
  std::size_t pairs;
  Seconds wall_plain;  ///< median
  Spread wall_share;   ///< by how much the whole run takes longer
  std::optional<Seconds> step_plain;
  std::optional<Spread> step_share;      ///< by how much a step takes longer
  std::optional<Seconds> cost_per_call;  ///< that the steps took longer, less what ranges cost
};

/// The medians over the pairs; low and high are the least and the greatest pair, and of one pair
/// alone the quartiles of its steps. The ranges that mark the steps of plain runs are taken off.
/// REQUIRES: at least one pair.
Overhead overhead_of(const std::vector<RunPair>& pairs, Seconds cost_per_range);

/// Runs the command again, `pairs` times without recording and `pairs` - 1 times with it, in turns;
/// `first` recorded it. Where the first recording marks steps, the plain runs have their ranges
/// recorded, and nothing of the device. A run that fails is an error.
Result<Overhead> measure_overhead(const capture::LaunchOptions& options,
                                  const capture::LaunchReport& first, std::size_t pairs);

}  // namespace rehearse::cli
