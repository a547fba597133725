// find_plans: the best plans of a job on a cluster, under limits.
//
// Plans are searched by closed forms (strategies/step/plan_costs.h); the best of them may then be
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
#include "strategies/step/predict.h"
#include "strategies/step/referee.h"

namespace rehearse::cli {

struct PlanRequest {
  strategies::Figure objective = strategies::Figure::kStepTime;
  /// Beside these a plan has to fit: 95 % of what is usable of each device.
  strategies::Figures at_most = strategies::kNoLimits;
  strategies::Axes axes = {};
  std::size_t keep = 10;
  std::optional<std::uint32_t> ranks = {};  ///< absent: all devices of the cluster
  /// Absent: closed forms alone, and FoundPlan::step stays empty. Message runs the best 5 %, or as
  /// many as may be run (runs_of()), and ranks them anew; the best of those, as many as cost some
  /// seconds, once more with all ranks. Simgrid runs what is kept of those once more.
  std::optional<step::Fidelity> confirm = {};
  /// What feeds each node: plans are searched with no step shorter than its samples take to come
  /// (plan_feed.h), and the best are fed by it. Null: samples are there. Outlives the search.
  const input::Feed* input = nullptr;
  cost::Place place = {};  ///< where the cluster is rented, for cost and carbon
  unsigned threads = 1;
  Progress progress = {};
  /// Executes the evaluation of plans, instead of threads of this process. A process that does not
  /// lead (work::leads()) then knows the figures alone: FoundPlan::step stays empty.
  strategies::Spread spread = {};
};

/// How long a step of a plan takes by each model, with samples that are there.
struct PlanTimes {
  /// Step times of the best plans, if computed: by closed forms; by messages with equivalent ranks
  /// folded; by messages of all ranks, with contention between different collectives.
  std::optional<Seconds> closed, message, all_ranks;
  std::optional<Seconds> fed;  ///< of the last of these, with waiting
  /// The last of them that was run. REQUIRES: one was.
  Seconds last() const { return all_ranks ? *all_ranks : message ? *message : *closed; }
  std::optional<step::Refereed> refereed;
};

struct FoundPlan {
  strategies::Training training;
  strategies::Plan plan;
  /// As far as they are known, else 0 (FoundPlans::known). Of the last model that ran the plan.
  strategies::Figures figures;
  std::optional<step::Step> step = {};
  PlanTimes times = {};
  Seconds of_all_ranks = Seconds::s(0);  ///< what running it with all ranks costs
};

struct FoundPlans {
  std::uint64_t candidates_seen = 0;
  std::uint64_t candidates_evaluated = 0;  ///< the others were cut by their bounds
  double candidates_per_s = 0;             ///< seen, over all threads
  double evaluated_per_s = 0;
  std::uint64_t confirmed = 0;  ///< run at the fidelity asked for
  std::uint64_t all_ranks = 0;  ///< of these, run with all ranks; 0 where ten are too large for it
  std::array<bool, strategies::kFigures> known = {};
  std::vector<FoundPlan> best;   ///< the best first; at least one
  std::vector<FoundPlan> front;  ///< of step time and memory, by step time; closed forms alone
};

/// How many plans of a space may be run message by message: the best 5 %, but no more than are run
/// in some seconds, and 100 all the same. Counted from how much some of them have to run, by what
/// that was measured to cost, so that it is the same on every machine.
std::size_t runs_of(const step::Spec& spec, const strategies::Space& space);

/// The job of a found plan.
step::Spec spec_of(const step::Spec& spec, const FoundPlan& found);

/// `spec.plan` and `spec.training` say what is no axis. Fails with one line where nothing divides,
/// nothing fits, or nothing keeps the limits: with the nearest plan that there is, and what it
/// misses.
Result<FoundPlans> find_plans(const step::Spec& spec, const cluster::Cluster& cluster,
                              const PlanRequest& request);

}  // namespace rehearse::cli
