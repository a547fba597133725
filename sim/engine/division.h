// Division: how capacities are divided among the flows that use them, at one instant.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

/// What one class of flows asks for, and what it gets.
struct Share {
  const graph::Demand* demand;
  double flows;      ///< how many, all alike
  double remaining;  ///< work left of one (of the one, where flows stand alone)
  double due;        ///< seconds from now until its group wants this flow to end; may be past
  double rate = 0;   ///< of each flow: the result
};

class Divider {
 public:
  explicit Divider(std::size_t capacities)
      : left_(capacities), use_(capacities), load_(capacities) {}

  /// Sets what the capacity offers. REQUIRES: set for every capacity of the shares, before divide.
  void offer(CapacityId capacity, double rate) { left_[capacity.index()] = rate; }

  /// Sets the rate of every share. REQUIRES: shares stand by falling priority.
  ///
  /// kFair (and kFirstCome, for flows that are no messages): max-min fair with weights, by
  /// progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): the
  /// capacity (or rate cap) with the least left per unit of weight limits the shares that use it;
  /// they are fixed, their use is taken off, and the rest goes on.
  ///
  /// kCoflow: groups one after the other, the one first whose slowest capacity alone would be done
  /// soonest; within a group every flow gets the rate at which all end together with the slowest.
  /// A group for which a capacity has nothing left takes what the others leave. (Smallest effective
  /// bottleneck first with minimal allocation: Chowdhury, Zhong and Stoica, SIGCOMM 2014.)
  ///
  /// kEchelon: groups one after the other, the one first whose flows can keep closest to their due
  /// times alone; within a group the flow that is due first takes all it can. (Flows with ideal
  /// finish times: Pan et al., HotNets 2022.)
  ///
  /// Under every law a higher priority goes first and the others take what it leaves.
  void divide(std::span<Share> shares, Division division);

 private:
  void fill_fair(std::span<Share> shares);
  void fill_groups(std::span<Share> shares, Division division);
  void take(Share& share, double rate);
  double most_for(const Share& share) const;

  std::vector<double> left_;  // per capacity: what fixed shares leave
  // While filling: per capacity the weight and number of shares not yet fixed, and where its users
  // stand in users_.
  struct Use {
    double weight = 0;
    std::uint32_t open = 0, first = 0, end = 0;
  };
  std::vector<Use> use_;
  std::vector<double> load_;                    // per capacity, while groups are ranked
  std::vector<std::uint32_t> used_, tightest_;  // capacities
  std::vector<std::uint32_t> users_, capped_;   // shares
  std::vector<char> is_fixed_;                  // per share
};

}  // namespace rehearse::engine
