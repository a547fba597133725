// PlanCosts: the cost of plans of one job on one cluster, by closed forms: for searches over
// thousands of them.
//
// The cost of a plan equals closed_step (closed_step.h) and memory_on (devices.h) of its layout
// exactly; shared results are computed once: layers rewritten for a rank, prices of their ops
// and collectives, orders. at_least() gives a lower bound without a layout.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategies/step/step.h"

namespace rehearse::step {

struct PlanCost {
  Seconds step;
  /// Peak of the fullest device, by its share of the usable memory; scaled to the
  /// smallest device of the cluster.
  Bytes memory;
  /// Computing, all ranks together, by kind of device in the order of the cluster.
  std::vector<Seconds> busy;
  Seconds mean_stall = Seconds::s(0);  ///< Step::mean_stall; a lower bound has none
};

class PlanCosts {
 public:
  /// REQUIRES: both outlive this object. Not for two threads at a time.
  PlanCosts(const Spec& spec, const cluster::Cluster& cluster);
  PlanCosts(PlanCosts&&) noexcept;
  ~PlanCosts();

  /// Nothing for a plan that cannot be laid out on the cluster or priced; why() gives the reason.
  /// If the plan needs more than `most` memory, `step` and `busy` are 0.
  std::optional<PlanCost> of(const strategies::Training& training, const strategies::Plan& plan,
                             Bytes most);
  /// A lower bound: no part of it is above that of of().
  std::optional<PlanCost> at_least(const strategies::Training& training,
                                   const strategies::Plan& plan);
  /// Whether collectives of a plan have calibrated prices wherever those of `usual` have; otherwise
  /// their costs do not compare. REQUIRES: both had a cost.
  bool prices_as(const strategies::Plan& plan, const strategies::Plan& usual) const;
  /// The error of the last plan without a cost.
  const Error& why() const;

  /// Usable memory of the smallest device.
  Bytes usable() const;
  /// A kind of device, with its number in the cluster. The kinds are those of PlanCost::busy.
  struct Kind {
    std::string name;
    const cluster::Gpu* gpu;  ///< null for cluster::kCpu
    double count;
  };
  const std::vector<Kind>& kinds() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rehearse::step
