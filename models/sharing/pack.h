// Placement of a set of jobs: alone, on slices, two on a GPU, or in turns, and when.
//
// Jobs that share GPUs are a group. Groups are assigned to GPUs one after another, the first in
// line to those that are free first. Starting with every job alone, the groups that help the goal
// most are joined (two, or several jobs of similar length), in the best way that their jobs can
// share, until no join helps. The result is not proven optimal: for few jobs it is near the
// optimum, and every placement states its gain.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/sharing/crossover.h"
#include "models/sharing/pairs.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/fleet/fleet.h"

namespace rehearse::sharing {

struct PackJob {
  std::string name;
  Seconds work;                         ///< alone on whole GPUs
  std::uint32_t gpus = 1;               ///< more than one: alone, or in turns with jobs of as many
  std::optional<Bytes> memory = {};     ///< per GPU; with unknown memory it shares nothing
  std::optional<Resident> like = {};    ///< its key in the law of pairs
  std::optional<Seconds> exposed = {};  ///< communication of a step that it does not hide
  Seconds hidden = Seconds::s(0);       ///< communication of a step that it hides
  std::optional<Seconds> deadline = {};
  /// By kind; else the kind's own.
  std::map<std::string, Estimate<double>> slice_rates = {};
};

enum class SharedHow : std::uint8_t { kAlone, kSlices, kTogether, kCrossover };
inline constexpr std::string_view kSharedHowNames[] = {"alone", "slices", "together", "crossover"};

enum class Goal : std::uint8_t {
  kThroughput,  ///< earliest last end
  kDeadline,    ///< least total lateness, then earliest last end
  kCost,        ///< least GPU time held, then earliest last end
};
inline constexpr std::string_view kGoalNames[] = {"throughput", "deadline", "cost"};

struct Site {
  std::uint32_t gpus;
  Bytes memory;
  std::uint32_t positions = 1;
  std::vector<fleet::SliceKind> slices = {};
  Links links = Links::kFair;  ///< for jobs that take turns
  /// The shares of two jobs on one GPU, by index. Nothing: unknown, so the two do not share in this
  /// way.
  std::function<std::optional<std::pair<double, double>>(std::size_t, std::size_t)> pair = {};
};

struct Placed {
  SharedHow how = SharedHow::kAlone;
  std::vector<std::size_t> jobs = {};
  std::vector<std::uint32_t> gpus = {};
  std::vector<std::string> slices = {};  ///< by job; empty without slices
  std::vector<double> rates = {};        ///< by job while all run
  /// On slices: the range of each job's rate.
  std::vector<std::pair<double, double>> ranges = {};
  Seconds start = Seconds::s(0), end = Seconds::s(0);
  double gain = 1;  ///< against the same jobs one after another on the same GPUs
};

struct Packing {
  std::vector<Placed> placements;        ///< in the order of their starts
  std::vector<Seconds> finish, started;  ///< by job
  Seconds makespan = Seconds::s(0), held = Seconds::s(0), late = Seconds::s(0);
  Seconds makespan_alone = Seconds::s(0), held_alone = Seconds::s(0), late_alone = Seconds::s(0);
};

inline constexpr std::size_t kMostPacked = 64;

/// Fails on no job or more than kMostPacked, and on jobs that do not fit.
Result<Packing> pack(std::span<const PackJob> jobs, const Site& site, Goal goal);

}  // namespace rehearse::sharing
