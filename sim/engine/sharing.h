// Sharing: how the ops that flow through capacities divide them, and when each has moved its work.
//
// Ops with equal demands form a class: they get equal rates, so that a class needs one number for
// all of them, the *service* that each of its ops has had since the class began. An op that joins
// at service s with work w leaves when the service reaches s + w. Dividing the capacities costs
// time in the number of classes, joining and leaving in the logarithm of the class's size; the
// number of flowing ops appears nowhere else.
//
// The division is max-min fair with weights, by progressive filling (Bertsekas and Gallager, Data
// Networks, 2nd ed., section 6.5.2): the capacity (or rate cap) with the least left per unit of
// weight limits the classes that use it; they are fixed, their use is taken off, and the rest goes
// on. Classes of a higher priority are filled first, the lower ones take what is left.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/graph/graph.h"

namespace rehearse::engine {

class Sharing {
 public:
  /// REQUIRES: `graph` outlives this object.
  explicit Sharing(const graph::Graph& graph);

  /// `op` begins to move `work` at `now`. REQUIRES: the demand has capacities.
  void join(OpId op, DemandId demand, double work, Picoseconds now);

  /// Divides the capacities as of `now`. Returns the next instant at which an op has moved its work
  /// or a capacity changes; nothing when neither will happen.
  std::optional<Picoseconds> divide(Picoseconds now);

  /// Ops that have moved their work by `now`, in order of class and joining. They leave.
  void leave(Picoseconds now, std::vector<OpId>& done);

  bool empty() const { return flowing_ == 0; }

  /// The capacity that keeps some flowing op at rate zero, for the message about a run that never
  /// ends. REQUIRES: divide was called and returned nothing, and ops flow.
  CapacityId stalled() const;

 private:
  struct Flow {
    double leaves_at;  // service at which the work is done
    std::uint64_t sequence;
    OpId op;
    bool operator<(const Flow& other) const {  // heaps keep the largest first
      return leaves_at != other.leaves_at ? leaves_at > other.leaves_at : sequence > other.sequence;
    }
  };
  struct Class {
    const graph::Demand* demand;
    double service = 0;       // work moved by each of its ops since the class was last empty
    double rate = 0;          // of each of its ops
    std::vector<Flow> flows;  // a heap
  };

  void advance(Picoseconds now);
  double rate_of(CapacityId capacity) const;
  void fill_priority(std::span<const std::uint32_t> classes);

  const graph::Graph& graph_;
  std::vector<std::optional<std::uint32_t>> class_of_demand_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> active_;  // classes with flows, by falling priority, then by age
  std::vector<double> left_;           // per capacity, while filling: what fixed classes leave
  std::vector<double> weight_;         // per capacity, while filling: of the ops not yet fixed
  Picoseconds at_{0};
  std::uint64_t sequence_ = 0;
  std::size_t flowing_ = 0;
};

}  // namespace rehearse::engine
