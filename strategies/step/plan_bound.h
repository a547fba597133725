// PlanBound: a lower bound of a plan's cost, without its layout.
//
// Time: a stage begins after the first microbatch has passed the previous stages, and ends after
// the last one's gradients have gone back through them. In between it computes all its
// passes, each with the collectives that it waits for and the copies to and from the host. Gradients
// summed after backward are summed one after the other, and so are weights gathered after the
// update. Memory: the states, the stage's activations at the fullest moment of its order, and layers
// that are copied from the host. Transfers between stages, gradients of layers smaller than a
// bucket, and other buffers are ignored. (Property test: never above closed_step and memory_on.)
#pragma once

#include <map>
#include <vector>

#include "strategies/layer_run.h"
#include "strategies/layer_split.h"
#include "strategies/states.h"
#include "strategies/step/collective_prices.h"
#include "strategies/step/order_times.h"
#include "strategies/step/plan_costs.h"

namespace rehearse::step {

class PlanBound {
 public:
  /// REQUIRES: all outlive this object.
  /// `devices`: the memory of each kind of PlanCosts.
  PlanBound(const Spec& spec, const strategies::Prices& prices, std::vector<memory::Device> devices,
            CollectivePrices& collectives)
      : spec_(spec), prices_(prices), devices_(std::move(devices)), collectives_(collectives) {}

  /// Nothing if a rank's workload cannot be rewritten or its collectives cannot be priced.
  /// REQUIRES: check_plan() holds; a plan without explicit stages.
  Result<PlanCost> of(const strategies::Training& training, const strategies::Plan& plan);

 private:
  /// Passes of a layer, in seconds: time of its rank's device, and the computing part of it.
  struct LayerTimes {
    std::array<double, strategies::kPasses> all = {}, computing = {};
    std::array<double, strategies::kPasses> host = {};  ///< of launching
  };
  /// The streams of collectives among those that hold the same parameters, dense ones and experts,
  /// and of copies between device and host.
  static constexpr std::size_t kCopies = 2, kStreams = 3;
  using Streams = std::array<double, kStreams>;
  /// What a layer moves before and after the update, in seconds.
  struct LayerSums {
    Streams sum = {}, gather = {};
  };
  /// Facts of a layer of a workload rewritten for a rank.
  struct LayerFacts {
    strategies::Parameters parameters;
    double kept = 0;       ///< bytes of a microbatch
    double saved = 0;      ///< the same, as copied to the host
    double transient = 0;  ///< of its backward
    bool updates = false;  ///< the optimizer's pass is the usual one
    bool recomputes = false;
    bool has_backward = false;
  };
  struct Rank {
    workload::Workload workload;
    std::vector<LayerFacts> layers = {};
    std::vector<workload::Op> collectives = {};  ///< one for each kind and group
    /// By split of backward and likeness of its groups.
    std::map<std::vector<std::uint32_t>, std::vector<LayerTimes>> times = {};
    /// Index of the facts, by kind and place.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, unsigned>,
             const std::vector<LayerTimes>*>
        at = {};
    /// By place and stage of ZeRO.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>,
             std::vector<LayerSums>>
        sums = {};
  };
  /// A chunk: its passes, and its collectives of parameters.
  struct Place {
    std::array<double, strategies::kPasses> passes = {};
    std::array<double, strategies::kPasses> host = {};  ///< how long launching them takes
    LayerSums sums = {};
    double busy() const { return passes[0] + passes[1] + passes[2] + passes[3]; }
  };
  class Plans;

  Bytes least_usable() const;
  static Rank facts_of(workload::Workload workload);
  Result<Rank*> rank_of(const strategies::RankSetting& setting);
  Result<const std::vector<LayerTimes>*> times_of(Rank& rank, const workload::Stage& stage,
                                                  strategies::Split split, bool pipelined);
  /// Zero for layers that share a bucket of gradients. A larger layer may carry smaller ones in its
  /// bucket: prices must not fall with the size.
  Result<const std::vector<LayerSums>*> sums_of(Rank& rank, const workload::Stage& stage,
                                                const strategies::ParameterTraffic& moves,
                                                const strategies::Plan& plan);
  Result<std::vector<LayerTimes>> priced(const Rank& rank, const workload::Stage& stage,
                                         strategies::Split split, bool pipelined);
  const std::vector<std::vector<strategies::LayerPart>>& chunks_of(const strategies::Plan& plan);

  const Spec& spec_;
  const strategies::Prices& prices_;
  const std::vector<memory::Device> devices_;
  CollectivePrices& collectives_;
  OrderProfiles orders_ = {};
  using RankKey =
      std::tuple<double, std::uint32_t, std::uint32_t, std::uint32_t, bool, strategies::Recompute>;
  std::map<RankKey, Result<Rank>> ranks_ = {};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::vector<strategies::LayerPart>>>
      chunks_ = {};
};

}  // namespace rehearse::step
