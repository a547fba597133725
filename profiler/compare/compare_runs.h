// Two runs of one job compared: the step, its parts, and every op.
#pragma once

#include <string>
#include <vector>

#include "profiler/compare/effect.h"
#include "profiler/compare/judge.h"
#include "profiler/compare/match.h"
#include "profiler/compare/run.h"

namespace rehearse::compare {

/// A quantity of both runs.
struct Quantity {
  std::string_view name;  ///< "step_time", "launch_gaps", …
  std::string_view unit;  ///< "s", "J", "B"
  /// A quantity with one value per run (memory) has no known error: it is set to 0.
  Effect effect;
  bool measured_by_step = true;
  bool significant = false;
};

/// The ops of one name, paired with their counterparts in the other run.
struct OpChange {
  std::string name;  ///< in the baseline; of a new op, in the candidate
  OpKind kind;
  std::vector<std::string> renamed;          ///< other names in the candidate
  double calls_before = 0, calls_after = 0;  ///< in an average step
  Effect effect;                             ///< seconds of a step
  bool significant = false;
};

struct RunComparison {
  std::vector<Quantity> quantities;  ///< the step first; those of both runs
  std::vector<OpChange> ops;         ///< by their effect on the step's time, largest first
  double matched_share = 0;          ///< Matches
  double same_shapes = 0;
};

/// A change is significant if it is not due to chance (with a probability of 2 x kWrong that any
/// quantity, or any op, is flagged by mistake), and is at least this share of the quantity, …
inline constexpr double kLeastChange = 0.01;
/// … and, for an op, at least this share of the step.
inline constexpr double kLeastShare = 0.001;
/// If the step changed, an op is also significant that differs in each step by this share of the step's
/// change, in its direction. At most ten ops can, so that few are by chance.
inline constexpr double kExplains = 0.1;
/// Runs with less than this share in common are runs of different jobs.
inline constexpr double kSameJob = 0.6;

/// Fails if the runs are of different jobs, of different numbers of ranks, or on different devices.
Result<Matches> match_runs(const Run& baseline, const Run& candidate);

/// Fails as match_runs does.
Result<RunComparison> compare_runs(const Run& baseline, const Run& candidate,
                                   const EffectOptions& options);

}  // namespace rehearse::compare
