// Division: how capacities are divided among the flows that use them, at one instant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// Demand of one class of flows, and its rate.
struct Share {
  const graph::Demand* demand;
  // Of `demand`, kept here since division reads them for every share.
  DemandId id;
  std::int32_t priority;
  double weight;
  double flows = 0;      ///< number of identical flows
  double remaining = 0;  ///< remaining work of one flow (of the one, if flows are separate)
  double due = 0;        ///< seconds from now until its group wants this flow to end; may be past
  double rate = 0;       ///< of each flow: the result
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
  void offer(CapacityId capacity, double rate) { left_[capacity.index()] = rate; }

  /// Sets the rates of these classes, whose shares are indexed by class number. REQUIRES: `classes`
  /// are in order of falling priority, and contain every class that uses their capacities and has
  /// work.
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
  void divide(std::vector<Share>& shares, std::span<const std::uint32_t> classes,
              Division division);

 private:
  void fill_fair(std::vector<Share>& shares, std::span<const std::uint32_t> classes);
  void fill_groups(std::span<Share* const> shares, Division division);
  void take(Share& share, double rate);
  double most_for(const Share& share) const;

  const std::vector<std::vector<std::uint32_t>>& users_;
  // By demand: its capacities, and the amount of each per unit of work.
  std::vector<std::uint32_t> first_capacity_;
  std::vector<CapacityId> capacities_;
  std::vector<double> taken_;

  std::vector<double> left_;  // per capacity: what fixed shares leave
  // While filling: per capacity the weight and number of shares not yet fixed, and its place in
  // used_.
  struct Use {
    double weight = 0;
    std::uint32_t open = 0;
    std::uint32_t place = 0;
  };
  std::vector<Use> use_;
  std::vector<std::uint32_t> used_;      // capacities
  std::vector<double> level_;            // of each of these; infinite if all shares are fixed
  std::vector<double> block_level_;      // least of each block of these
  std::vector<std::uint32_t> tightest_;  // capacities
  std::vector<std::uint32_t> capped_;    // classes
  std::vector<char> is_open_;            // per class: not yet fixed
  std::vector<Share*> equal_;            // of one priority
  std::vector<double> load_;             // per capacity, while groups are ranked
};

}  // namespace rehearse::engine
