#include "sim/engine/division.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace rehearse::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Shares of one group, or one share that belongs to none.
struct Group {
  std::vector<Share*> shares;
  double rank = 0;  // the smallest goes first
};

/// In order of first appearance.
std::vector<Group> groups_of(std::span<Share* const> shares) {
  std::vector<Group> groups;
  std::map<FlowGroupId, std::size_t> known;
  for (Share* const share : shares) {
    std::size_t at = groups.size();
    if (share->demand->group) at = known.emplace(*share->demand->group, at).first->second;
    if (at == groups.size()) groups.emplace_back();
    groups[at].shares.push_back(share);
  }
  return groups;
}

/// Fewer classes are divided from the start.
constexpr std::size_t kWorthRepeating = 16;

/// Whether sums of up to 2^20 multiples of this weight by counts of flows up to 2^20 have no
/// rounding.
bool adds_exactly(double weight) {
  const double scaled = weight * 64;
  return scaled == std::floor(scaled) && weight <= 64;
}

}  // namespace

Divider::Divider(const graph::Graph& graph, const std::vector<std::vector<std::uint32_t>>& users)
    : users_(users), use_(graph.capacities().size()), load_(graph.capacities().size()) {
  first_capacity_.push_back(0);
  for (const graph::Demand& demand : graph.demands()) {
    exact_.push_back(true);
    for (std::size_t k = 0; k < demand.capacities.size(); ++k) {
      capacities_.push_back(demand.capacities[k]);
      taken_.push_back(demand.units_taken(k));
      if (!adds_exactly(demand.weight * taken_.back())) exact_.back() = false;
    }
    first_capacity_.push_back(static_cast<std::uint32_t>(capacities_.size()));
  }
}

void Divider::divide(std::vector<Share>& shares, std::span<const std::uint32_t> classes,
                     Division division, Picoseconds now, Filling& filling) {
  filling.steps.clear();
  filling.fixed.clear();
  filling.repeatable = false;
  if (division != Division::kCoflow && division != Division::kEchelon && classes.size() == 1)
    return fill_alone(shares[classes.front()], classes.front(), now, filling);
  if (division == Division::kCoflow || division == Division::kEchelon) {
    filling.steps.push_back(
        {.first_fixed = 0, .first_taken = 0, .first_capped = 0, .fixed_at = now});
    filling.fixed.assign(classes.begin(), classes.end());
  } else if (classes.size() >= kWorthRepeating &&
             shares[classes.front()].priority == shares[classes.back()].priority) {
    filling.repeatable = std::ranges::all_of(
        classes, [&](std::uint32_t c) { return exact_[shares[c].id.index()] != 0; });
  }
  for (std::size_t first = 0; first < classes.size();) {
    const std::int32_t priority = shares[classes[first]].priority;
    std::size_t stop = first;
    while (stop < classes.size() && shares[classes[stop]].priority == priority) ++stop;
    const auto equal = classes.subspan(first, stop - first);
    if (division == Division::kCoflow || division == Division::kEchelon) {
      equal_.clear();
      for (const std::uint32_t c : equal) equal_.push_back(&shares[c]);
      fill_groups(equal_, division);
      for (const std::uint32_t c : equal) filling.steps.front().add(shares[c]);
    } else {
      begin_filling(shares, equal, filling);
      fill(shares, now, filling);
    }
    first = stop;
  }
}

void Divider::fill_alone(Share& share, std::uint32_t number, Picoseconds now, Filling& filling) {
  const double weight = share.weight * share.flows;
  const std::uint32_t demand = share.id.index();
  double level = share.demand->rate_cap / share.weight;
  for (std::uint32_t k = first_capacity_[demand]; k < first_capacity_[demand + 1]; ++k)
    level =
        std::min(level, std::max(0.0, use_[capacities_[k].index()].left) / (weight * taken_[k]));
  share.rate = level * share.weight;
  filling.fixed.push_back(number);
  filling.steps.push_back({.first_fixed = 0, .first_taken = 0, .first_capped = 0, .fixed_at = now});
  filling.steps.back().add(share);
}

double Divider::most_for(const Share& share) const {
  double most = share.demand->rate_cap;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    most = std::min(most, use_[capacities[k].index()].left / share.demand->units_taken(k));
  return std::max(0.0, most);
}

void Divider::take(Share& share, double rate) {
  share.rate = rate;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    use_[capacities[k].index()].left -= rate * share.demand->units_taken(k);
}

void Divider::fill_groups(std::span<Share* const> shares, Division division) {
  // The time that the group needs with the remaining capacities; infinite if one of them has
  // nothing left.
  std::vector<double>& load = load_;
  const auto time_alone = [&](const Group& group) {
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) load[c.index()] = 0;
    double time = 0;
    for (const Share* share : group.shares) {
      time = std::max(time, share->remaining() / share->demand->rate_cap);
      for (std::size_t k = 0; k < share->demand->capacities.size(); ++k) {
        const std::uint32_t c = share->demand->capacities[k].index();
        load[c] += share->remaining() * share->demand->units_taken(k);
        const double end = use_[c].left > 0 ? load[c] / use_[c].left : kInfinity;
        time = std::max(time, end);
      }
    }
    return time;
  };
  // The lateness of its latest flow when flows with earlier due times go first.
  const auto tardiness_alone = [&](const Group& group) {
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) load[c.index()] = 0;
    double tardiness = -kInfinity;
    for (const Share* share : group.shares)
      for (std::size_t k = 0; k < share->demand->capacities.size(); ++k) {
        const std::uint32_t c = share->demand->capacities[k].index();
        load[c] += share->remaining() * share->demand->units_taken(k);
        const double end = use_[c].left > 0 ? load[c] / use_[c].left : kInfinity;
        tardiness = std::max(tardiness, end - share->due);
      }
    return tardiness;
  };

  std::vector<Group> groups = groups_of(shares);
  const bool coflow = division == Division::kCoflow;
  for (Group& group : groups) {
    if (!coflow)
      std::ranges::stable_sort(group.shares,
                               [](const Share* a, const Share* b) { return a->due < b->due; });
    group.rank = coflow ? time_alone(group) : tardiness_alone(group);
  }
  std::ranges::stable_sort(groups, {}, &Group::rank);
  std::vector<Group*> starved;
  for (Group& group : groups) {
    if (!coflow) {
      for (Share* share : group.shares) take(*share, most_for(*share));
      continue;
    }
    const double time = time_alone(group);
    if (time == kInfinity) {
      starved.push_back(&group);
      continue;
    }
    for (Share* share : group.shares)
      take(*share,
           time > 0 ? std::min(share->remaining() / time, most_for(*share)) : most_for(*share));
  }
  for (Group* group : starved)
    for (Share* share : group->shares) take(*share, most_for(*share));
}

}  // namespace rehearse::engine
