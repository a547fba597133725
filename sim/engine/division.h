// Division: how capacities are divided among the flows that use them, at one instant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// Demand of one class of flows, its rate, and the work that it has moved.
struct Share {
  const graph::Demand* demand;
  // Of `demand`, kept here since division reads them for every share.
  DemandId id;
  std::int32_t priority;
  double weight;
  double flows = 0;      ///< number of identical flows
  double service = 0;    ///< work moved by each of its flows since the class began
  Picoseconds at{0};     ///< of `service`
  double leaves_at = 0;  ///< service at which the first of its flows has moved its work
  double rate = 0;       ///< of each flow: the result
  double due = 0;        ///< seconds from now until its group wants this flow to end; may be past

  void advance(Picoseconds now) {
    service += rate * (now - at).seconds().s();
    at = now;
  }
  /// Remaining work of the flow that leaves first.
  double remaining() const { return std::max(0.0, leaves_at - service); }
};

/// A division: its classes in the order in which their rates were fixed. One that is `repeatable`
/// can be continued from any of its steps after flows have left.
struct Filling {
  struct Step {
    std::uint32_t first_fixed, first_taken, first_capped;  // entries of all earlier steps
    Picoseconds fixed_at{0};
    double wait = kForever;  // seconds from then to the first end of one of its flows
    double slowest = std::numeric_limits<double>::infinity();
    Picoseconds first_end{std::numeric_limits<std::int64_t>::max()};

    void add(const Share& share) {
      slowest = std::min(slowest, share.rate);
      if (share.rate > 0) wait = std::min(wait, share.remaining() / share.rate);
    }
  };
  struct Taken {
    double left;    // of the capacity, before
    double weight;  // by which its open weight fell
    std::uint32_t capacity, open;
  };
  std::vector<Step> steps;
  std::vector<std::uint32_t> fixed;
  bool repeatable = false;

  std::uint32_t first_of(std::size_t step) const {
    return step < steps.size() ? steps[step].first_fixed : static_cast<std::uint32_t>(fixed.size());
  }
  /// The classes whose rates a step fixed.
  std::span<const std::uint32_t> classes_of(std::size_t step) const {
    return {fixed.data() + first_of(step), fixed.data() + first_of(step + 1)};
  }

  std::size_t open = 0;               // classes not yet fixed
  std::vector<std::uint32_t> used;    // capacities
  std::vector<double> level;          // of each of these; infinite if all shares are fixed
  std::vector<std::uint32_t> capped;  // classes with a cap, the tightest first
  std::size_t next_capped = 0;
  std::vector<Taken> taken;  // what the steps changed, if repeatable
};

class Divider {
 public:
  /// `users`: the classes that use each capacity, in the order in which they began. REQUIRES: both
  /// outlive this object.
  Divider(const graph::Graph& graph, const std::vector<std::vector<std::uint32_t>>& users);

  /// The capacities of a demand, stored contiguously because every message reads them.
  std::span<const CapacityId> capacities_of(DemandId demand) const {
    return {capacities_.data() + first_capacity_[demand.index()],
            capacities_.data() + first_capacity_[demand.index() + 1]};
  }

  /// Sets the rate of the capacity. REQUIRES: set for every capacity of the shares, before divide.
  void offer(CapacityId capacity, double rate) { use_[capacity.index()].left = rate; }

  /// Sets the rates of these classes from `now` on, whose shares are indexed by class number.
  /// REQUIRES: `classes` are in order of falling priority, and contain every class that uses their
  /// capacities and has work.
  ///
  /// kFair (and kFirstCome, for flows that are not messages): max-min fair with weights, by
  /// progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): the
  /// capacity (or rate cap) with the least left per unit of weight limits the shares that use it;
  /// they are fixed, their use is subtracted, and the rest continues.
  ///
  /// kCoflow: groups are served one after the other, first the one whose slowest capacity alone
  /// would finish soonest. Within a group every flow gets the rate at which all end together with
  /// the slowest. A group for which a capacity has nothing left takes the remainder of the others.
  /// (Smallest effective bottleneck first with minimal allocation: Chowdhury, Zhong and Stoica,
  /// SIGCOMM 2014.)
  ///
  /// kEchelon: groups are served one after the other, first the one whose flows can keep closest to
  /// their due times alone. Within a group the earliest due flow takes all it can. (Flows with
  /// ideal finish times: Pan et al., HotNets 2022.)
  ///
  /// Under every law a higher priority is served first and the others take the remainder.
  void divide(std::vector<Share>& shares, std::span<const std::uint32_t> classes, Division division,
              Picoseconds now, Filling& filling);

  /// Undoes the steps of a filling from `step` on, so that the shares that they fixed are open.
  /// The earlier steps remain valid if the weights of open shares fall. REQUIRES: repeatable.
  void reopen(Filling& filling, std::size_t step);
  /// Sets the number of flows of an open share. REQUIRES: no more than it had.
  void reduce(Share& share, std::uint32_t number, double flows, Filling& filling);
  /// Fixes the open shares, after advancing each to `now`.
  void fill(std::vector<Share>& shares, Picoseconds now, Filling& filling);

 private:
  void begin_filling(const std::vector<Share>& shares, std::span<const std::uint32_t> classes,
                     Filling& filling);
  /// The whole filling where there is one class, with `use_` unchanged.
  void fill_alone(Share& share, std::uint32_t number, Picoseconds now, Filling& filling);
  void fill_groups(std::span<Share* const> shares, Division division);
  void take(Share& share, double rate);
  double most_for(const Share& share) const;

  const std::vector<std::vector<std::uint32_t>>& users_;
  // By demand: its capacities, and the amount of each per unit of work.
  std::vector<std::uint32_t> first_capacity_;
  std::vector<CapacityId> capacities_;
  std::vector<double> taken_;
  // By demand: whether sums of its weights are exact, in any order.
  std::vector<char> exact_;

  struct Use {
    double left = 0;  // by fixed shares
    // While filling: the weight and number of shares not yet fixed, and its place among the used
    // capacities.
    double weight = 0;
    std::uint32_t open = 0;
    std::uint32_t place = 0;

    double level() const {
      return open > 0 ? std::max(0.0, left) / weight : std::numeric_limits<double>::infinity();
    }
  };
  std::vector<Use> use_;                 // per capacity
  std::vector<double> block_level_;      // least of each block of levels
  std::vector<std::uint32_t> tightest_;  // capacities
  std::vector<std::uint32_t> open_;      // classes of one of these
  std::vector<std::uint32_t> is_open_;   // per class: 1 if not yet fixed
  std::vector<Share*> equal_;            // of one priority
  std::vector<double> load_;             // per capacity, while groups are ranked
};

}  // namespace rehearse::engine
