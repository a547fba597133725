// The effect of a job's input pipeline on its plans, for searches: a lower bound of the step time
// without a run of the pipeline, and the price of requests.
#pragma once

#include <map>
#include <tuple>

#include "models/input/pipeline.h"
#include "strategies/search/space.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// The share of a plan's own time that is added to its time with input stalls, so that equally
/// stalled plans are ordered by their own time.
inline constexpr double kOwnTime = 1e-4;

/// No pipeline gives more than its tightest resource can (models/input/limits.h), and each node
/// has one: the node with the most data ranks takes its part of a step no sooner than that. Not for
/// two threads at a time.
class PlanFeed {
 public:
  /// REQUIRES: all outlive this object.
  PlanFeed(const input::Pipeline& pipeline, const step::Spec& spec,
           const cluster::Cluster& cluster);

  /// What a step that takes so long by itself waits for its samples, at least; of those that wait
  /// the shorter ones less, by so little that it only orders them. Never less for a longer step.
  Seconds waiting(const strategies::Training& training, const strategies::Plan& plan, Seconds step);

  /// How long a step takes at least for its samples to come; nothing of plans with stages of their
  /// own, and of those that cannot be laid out.
  Seconds at_least(const strategies::Training& training, const strategies::Plan& plan);

  /// What the requests to storage of a step cost; nothing of plans that cannot be laid out.
  Usd requests(const strategies::Training& training, const strategies::Plan& plan);

 private:
  /// By a step.
  struct Takes {
    double units = 0;  ///< by the busiest node
    Usd requests = Usd::usd(0);
  };
  Takes takes_of(const strategies::Training& training, const strategies::Plan& plan);

  using Where =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, strategies::Placement>;

  const input::Pipeline& pipeline_;
  const step::Spec& spec_;
  const cluster::Cluster& cluster_;
  double units_per_s_ = 0;             ///< at most; 0: nothing bounds it
  std::map<Where, Takes> takes_ = {};  ///< by where ranks stand
};

}  // namespace rehearse::cli
