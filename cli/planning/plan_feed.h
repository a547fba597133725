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

/// A pipeline delivers no more than its tightest resource allows (models/input/limits.h). Each node
/// has one pipeline, so a step is never shorter than the time in which the node with the most data
/// ranks receives its samples. Not safe for concurrent use by two threads.
class PlanFeed {
 public:
  /// REQUIRES: all arguments outlive this object.
  PlanFeed(const input::Pipeline& pipeline, const step::Spec& spec,
           const cluster::Cluster& cluster);

  /// The least time that a step with this computing time waits for its samples. Among steps that
  /// wait, a shorter one waits slightly less, only to order them (kOwnTime). Never less for a
  /// longer step.
  Seconds waiting(const strategies::Training& training, const strategies::Plan& plan, Seconds step);

  /// The least time of a step in which its samples can arrive; zero for plans that place stages
  /// explicitly, and for plans that cannot be laid out.
  Seconds at_least(const strategies::Training& training, const strategies::Plan& plan);

  /// The cost of a step's storage requests; zero for plans that cannot be laid out.
  Usd requests(const strategies::Training& training, const strategies::Plan& plan);

 private:
  /// Requests of a step.
  struct Takes {
    double units = 0;  ///< units of the busiest node
    Usd requests = Usd::usd(0);
  };
  Takes takes_of(const strategies::Training& training, const strategies::Plan& plan);

  using Where =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, strategies::Placement>;

  const input::Pipeline& pipeline_;
  const step::Spec& spec_;
  const cluster::Cluster& cluster_;
  double units_per_s_ = 0;             ///< the most; 0: unlimited
  std::map<Where, Takes> takes_ = {};  ///< by the placement of ranks
};

}  // namespace rehearse::cli
