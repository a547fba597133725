// find_plans: the best plans of a job on a cluster, under limits.
//
// Plans are searched by closed forms (strategies/step/plan_costs.h). The best of them may then be
// run as `simulate` runs them, which changes their order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cost/step_account.h"
#include "models/input/feed.h"
#include "sim/cluster/cluster.h"
#include "strategies/search/search.h"
#include "strategies/search/space.h"
#include "strategies/step/path_parts.h"
#include "strategies/step/predict.h"
#include "strategies/step/referee.h"

namespace rehearse::cli {

struct FoundPlan;

struct PlanRequest {
  strategies::Figure objective = strategies::Figure::kStepTime;
  /// Limits in addition to memory: a plan must always fit in 95 % of the usable memory of each
  /// device.
  strategies::Figures at_most = strategies::kNoLimits;
  /// Plans that are run are ranked, and held against limits, by what they stay below with this
  /// probability: 0.5 is the value itself.
  double risk = 0.5;
  strategies::Axes axes = {};
  std::size_t keep = 10;
  /// The steps of the best plans are run with all their microbatches, as `simulate` does, and have
  /// FoundPlan::path.
  bool timelines = true;
  /// If no plan fits, look for one that does without the given keys.
  bool look_beyond = true;
  bool front = true;  ///< also find FoundPlans::front, which takes most of the evaluations
  /// At most so many plans are run message by message, if fewer than runs_of(); absent: no limit.
  std::optional<std::size_t> most_runs = {};
  bool thorough = false;                    ///< more plans are run (runs_of())
  std::optional<std::uint32_t> ranks = {};  ///< absent: all devices of the cluster
  /// Absent: only closed forms are used, and FoundPlan::step stays empty. Message runs the best 5
  /// %, or as many as may be run (runs_of()), and ranks them anew; then it runs the best of those,
  /// as many as take some seconds, again with all ranks. Simgrid runs the best plans that remain
  /// again.
  std::optional<step::Fidelity> confirm = {};
  /// The pipeline that feeds each node. The search assumes that no step is shorter than the time in
  /// which its samples can arrive (plan_feed.h), and the best plans are run with the pipeline.
  /// Null: samples are always available. Outlives the search.
  const input::Feed* input = nullptr;
  cost::Place place = {};  ///< where the cluster is rented; for cost and carbon
  unsigned threads = 1;
  /// Begins a phase, and returns its progress.
  std::function<Progress(const char* what)> phase = [](const char*) { return Progress(); };
  /// Receives the best plan by closed forms, before any is run.
  std::function<void(const FoundPlan&)> first_answer = {};
  /// Executes the evaluation of plans, instead of threads of this process. A process that does not
  /// lead (work::leads()) gets only the figures: FoundPlan::step stays empty.
  strategies::Spread spread = {};
};

/// The step time of a plan by each model, with samples always available.
struct PlanTimes {
  /// Step times of the best plans, if computed: by closed forms; by messages with equivalent ranks
  /// folded; by messages of all ranks, with contention between different collectives.
  std::optional<Seconds> closed, message, all_ranks;
  std::optional<Seconds> fed;  ///< the last of these, with the wait for input
  /// The last of the times that was computed. REQUIRES: at least one was.
  Seconds last() const { return all_ranks ? *all_ranks : message ? *message : *closed; }
  std::optional<step::Refereed> refereed;
};

struct FoundPlan {
  strategies::Training training;
  strategies::Plan plan;
  /// From the last model that ran the plan; 0 if unknown (FoundPlans::known).
  strategies::Figures figures;
  /// Of the run step: what it stays below at the request's risk, and its peak, as factors of their
  /// values.
  double slower = 1, fuller = 1;
  std::optional<step::Step> step = {};  ///< without its run
  step::StepPath path = {};             ///< with PlanRequest::timelines
  PlanTimes times = {};
  step::RunSize size = {};  ///< if it was run by messages
};

struct FoundPlans {
  std::uint64_t candidates_seen = 0;
  std::uint64_t candidates_evaluated = 0;  ///< the others were pruned by their bounds
  double candidates_per_s = 0;             ///< candidates searched, over all threads
  double evaluated_per_s = 0;
  std::uint64_t confirmed = 0;  ///< plans run at the requested fidelity
  /// Plans that a thorough request runs; absent if the request was thorough or set a limit.
  std::optional<std::size_t> runs_if_thorough = {};
  /// Of these, run with all ranks: as many as are shown; else those that were first at some time,
  /// if they can be run in seconds.
  std::uint64_t all_ranks = 0;
  std::array<bool, strategies::kFigures> known = {};
  std::vector<FoundPlan> best;  ///< the best first; at least one
  /// Of step time and memory, by step time; by closed forms. Without PlanRequest::front, one of the
  /// best.
  std::vector<FoundPlan> front;
};

/// Within 5 % of the usable memory, memory models cannot decide whether a plan fits.
inline constexpr double kMostMemory = 0.95;

/// Plans whose objectives differ by less than this may be in either order: of a sweep of layouts,
/// plans that were left out by row are 3 % off in the median.
inline constexpr double kNoise = 0.03;

/// Times that differ by a smaller share are the same.
inline constexpr double kSameTime = 1e-3;

/// Within the noise, one with less of this comes first, then a simpler ones: 0 in a known regime without stalls, 1 if
/// some runs stall, 2 in a regime without measured steps.
int caution_of(const step::Step& step);

step::Spec spec_of(const step::Spec& spec, const FoundPlan& found);

/// Searches the plans of a job; `spec.plan` and `spec.training` give all settings that are not
/// axes. Fails with one line if nothing divides evenly, fits, or meets the limits; the line names
/// the nearest plan and the limit that it misses.
Result<FoundPlans> find_plans(const step::Spec& spec, const cluster::Cluster& cluster,
                              const PlanRequest& request);

}  // namespace rehearse::cli
