#include "strategies/step/plan_costs.h"

#include <algorithm>
#include <map>

#include "sim/cluster/catalog.h"
#include "strategies/lay_out.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "strategies/step/devices.h"
#include "strategies/step/fit_recompute.h"
#include "strategies/step/host_memory.h"
#include "strategies/step/plan_bound.h"

namespace rehearse::step {

using strategies::Plan;
using strategies::Training;
using workload::Layout;
using workload::Stage;

class PlanCosts::State {
 public:
  State(const Spec& spec, const cluster::Cluster& cluster) : spec_(spec), cluster_(cluster) {
    for (const cluster::Device& device : cluster.devices()) {
      auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                               [&](const Kind& k) { return k.name == device.model; });
      if (kind == kinds_.end()) {
        const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device.model);
        kind = kinds_.insert(kind, {device.model, gpu ? *gpu : nullptr, 0});
        if (kind->gpu != nullptr) usable_ = std::min(usable_, memory::device_of(*kind->gpu).usable);
      }
      kind->count += 1;
    }
  }

  std::optional<PlanCost> of(const Training& training, const Plan& plan, Bytes most) {
    const Result<Layout> layout = lay_out_on(cluster_, spec_.workload, training, plan);
    if (!layout) return wrong(layout);
    if (!find_devices(*layout)) return std::nullopt;
    const Result<std::vector<memory::StageMemory>> memory = memory_on(*layout, cluster_);
    if (!memory) return wrong(memory);
    const std::optional<HostMemory> host = host_memory(*layout, cluster_);
    const double fullest = std::max(memory::fullest(*memory).share(), host ? host->share() : 0);
    PlanCost cost{Seconds::s(0), usable_ * fullest, {}};
    cost.busy.assign(kinds_.size(), Seconds::s(0));
    const Situation situation = situation_on(*layout, training, plan);
    if (!spec_.conditions.measured)
      cost.mean_stall = mean_stall(situation, *layout, spec_.conditions.host);
    if (cost.memory > most) return cost;
    Priced& prices = priced(plan);
    prices.collectives.forget_many();
    const Result<StepTime> time = closed_step(*layout, *prices.prices, options(*layout, situation));
    if (!time) return wrong(time);
    cost.step = time->step;
    for (std::size_t s = 0; s < layout->stages.size(); ++s) {
      const Stage& stage = layout->stages[s];
      cost.busy[kind_of(stage)] += time->computing[s] * stage.degrees.ranks();
    }
    return cost;
  }

  std::optional<PlanCost> at_least(const Training& training, const Plan& plan) {
    // Each has degrees of its own, or layers of two kinds.
    if (!plan.stages.empty() || training.recompute == strategies::Recompute::kAsNeeded)
      return PlanCost{Seconds::s(0), Bytes::b(0), std::vector(kinds_.size(), Seconds::s(0))};
    if (!devices_ || ranks_ != strategies::ranks_of(plan)) {
      const Result<Layout> layout = strategies::lay_out(spec_.workload, training, plan);
      if (!layout) return wrong(layout);
      if (!find_devices(*layout)) return std::nullopt;
    }
    Priced& prices = priced(plan);
    prices.collectives.forget_many();
    const Result<PlanCost> least = prices.bound->of(training, plan);
    if (!least) return wrong(least);
    return *least;
  }

  bool prices_as(const Plan& plan, const Plan& usual) const {
    const std::vector<job::Pricing>&a = priced_.at(plan.collectives)->collectives.pricings(),
          &b = priced_.at(usual.collectives)->collectives.pricings();
    return std::none_of(a.begin(), a.end(), [&](const job::Pricing& p) {
      return !p.calibrated && std::any_of(b.begin(), b.end(), [&](const job::Pricing& q) {
        return q.calibrated && q.kind == p.kind && q.ranks == p.ranks;
      });
    });
  }
  const Error& why() const { return why_; }
  Bytes usable() const { return usable_; }
  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  /// Prices of communication, and results computed with them, for plans with the same algorithms.
  struct Priced {
    Priced(const cluster::Cluster& cluster, const Algorithms& algorithms)
        : rules{.fidelity = job::Fidelity::kClosed, .algorithms = algorithms, .calibrated = true},
          collectives(cluster, rules) {}

    const job::Rules rules;
    CollectivePrices collectives;
    std::optional<StepPrices> prices = {};  ///< of the devices at hand
    std::optional<PlanBound> bound = {};
  };
  /// REQUIRES: find_devices().
  Priced& priced(const Plan& plan) {
    std::unique_ptr<Priced>& priced = priced_[plan.collectives];
    if (!priced) priced = std::make_unique<Priced>(cluster_, plan.collectives);
    if (!priced->prices) {
      priced->prices.emplace(priced->collectives.step_prices(*known_prices_));
      priced->bound.emplace(spec_, priced->prices->op, memories(), priced->collectives);
    }
    return *priced;
  }

  StepOptions options(const Layout& layout, const Situation& situation) const {
    return {.job = job_options(spec_.conditions, situation, layout),
            .overlap_loss = spec_.conditions.overlap_penalty};
  }
  Situation situation_on(const Layout& layout, const Training& training, const Plan& plan) const {
    return situation_of(layout, cluster_, training.microbatch, plan.zero > 0);
  }

  template <class T>
  std::nullopt_t wrong(const Result<T>& result) {
    why_ = result.error();
    return std::nullopt;
  }

  std::vector<memory::Device> memories() const {
    std::vector<memory::Device> memories;
    for (const Kind& kind : kinds_)
      memories.push_back(kind.gpu != nullptr ? memory::device_of(*kind.gpu)
                                             : memory::Device{Bytes::gib(1e9), 0});
    return memories;
  }

  /// The devices of all ranks are those of the first plan with the same number of ranks.
  bool find_devices(const Layout& layout) {
    if (devices_ && ranks_ == layout.ranks()) return true;
    Result<Devices> devices = Devices::of(layout, cluster_, spec_);
    if (!devices) {
      wrong(devices);
      return false;
    }
    devices_ = std::make_unique<Devices>(std::move(*devices));
    ranks_ = layout.ranks();
    for (auto& [algorithms, priced] : priced_) {
      priced->bound.reset();
      priced->prices.reset();
    }
    known_prices_.emplace(devices_->prices());
    return true;
  }

  std::size_t kind_of(const Stage& stage) const {
    const std::string& name = cluster_.devices()[stage.first_rank].model;
    const auto kind =
        std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.name == name; });
    return static_cast<std::size_t>(kind - kinds_.begin());
  }

  const Spec& spec_;
  const cluster::Cluster& cluster_;
  std::vector<Kind> kinds_ = {};
  Bytes usable_ = Bytes::gib(1e9);
  std::unique_ptr<Devices> devices_ = {};
  std::uint32_t ranks_ = 0;
  std::optional<strategies::Prices> known_prices_ = {};
  std::map<Algorithms, std::unique_ptr<Priced>> priced_ = {};
  Error why_ = {};
};

PlanCosts::PlanCosts(const Spec& spec, const cluster::Cluster& cluster)
    : state_(std::make_unique<State>(spec, cluster)) {}
PlanCosts::PlanCosts(PlanCosts&&) noexcept = default;
PlanCosts::~PlanCosts() = default;

std::optional<PlanCost> PlanCosts::of(const Training& training, const Plan& plan, Bytes most) {
  return state_->of(training, plan, most);
}
std::optional<PlanCost> PlanCosts::at_least(const Training& training, const Plan& plan) {
  return state_->at_least(training, plan);
}
bool PlanCosts::prices_as(const Plan& plan, const Plan& usual) const {
  return state_->prices_as(plan, usual);
}
const Error& PlanCosts::why() const { return state_->why(); }
Bytes PlanCosts::usable() const { return state_->usable(); }
const std::vector<PlanCosts::Kind>& PlanCosts::kinds() const { return state_->kinds(); }

}  // namespace rehearse::step
