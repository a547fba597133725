// Measures the overhead of recording by running a program with and without it.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "profiler/launch/launch.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// A ratio and its range.
struct Spread {
  double value;
  double low;
  double high;
};

/// The steps that a recording marks, on its first rank that marks any. The first fifth of them (at
/// least one) is left out as warm-up.
struct MeasuredSteps {
  std::vector<Seconds> steps = {};  ///< sorted; never empty
  double ranges_per_step;           ///< of all threads
  double calls_per_step;            ///< of the CUDA runtime and driver
};

/// Returns nothing if no steps are marked, or too few to leave out the warm-up.
Result<std::optional<MeasuredSteps>> measured_steps(const std::filesystem::path& folder);

/// One run with recording and one without.
struct RunPair {
  Seconds wall_recorded;
  Seconds wall_plain;
  std::optional<MeasuredSteps> recorded = {};
  std::optional<MeasuredSteps> plain = {};
};

struct Overhead {
  std::size_t pairs;
  Seconds wall_plain;  ///< median
  Spread wall_share;   ///< by how much the whole run takes longer, relative
  std::optional<Seconds> step_plain = {};
  std::optional<Spread> step_share = {};      ///< by how much a step takes longer, relative
  std::optional<Seconds> cost_per_call = {};  ///< extra step time per call, less the cost of ranges
};

/// The medians over the pairs. Low and high are the smallest and the largest pair; with a single
/// pair they are the quartiles of its steps. The cost of the ranges that mark the steps of plain
/// runs is subtracted. REQUIRES: at least one pair.
Overhead overhead_of(const std::vector<RunPair>& pairs, Seconds cost_per_range);

/// Runs the command again, `pairs` times without recording and `pairs` - 1 times with it,
/// alternating; `first` is the first recorded run. If that recording marks steps, the plain runs
/// record their ranges, but nothing of the device. Fails if a run fails.
Result<Overhead> measure_overhead(const capture::LaunchOptions& options,
                                  const capture::LaunchReport& first, std::size_t pairs);

}  // namespace rehearse::cli
