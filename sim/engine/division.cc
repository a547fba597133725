#include "sim/engine/division.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace rehearse::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Shares of one group, or one share that belongs to none.
struct Group {
  std::vector<Share*> shares;
  double rank = 0;  // the smallest goes first
};

/// In order of first appearance.
std::vector<Group> groups_of(std::span<Share> shares) {
  std::vector<Group> groups;
  std::map<FlowGroupId, std::size_t> known;
  for (Share& share : shares) {
    std::size_t at = groups.size();
    if (share.demand->group) at = known.emplace(*share.demand->group, at).first->second;
    if (at == groups.size()) groups.emplace_back();
    groups[at].shares.push_back(&share);
  }
  return groups;
}

}  // namespace

void Divider::divide(std::span<Share> shares, Division division) {
  for (std::size_t first = 0; first < shares.size();) {
    const std::int32_t priority = shares[first].demand->priority;
    std::size_t stop = first;
    while (stop < shares.size() && shares[stop].demand->priority == priority) ++stop;
    const auto equal = shares.subspan(first, stop - first);
    if (division == Division::kCoflow || division == Division::kEchelon)
      fill_groups(equal, division);
    else
      fill_fair(equal);
    first = stop;
  }
}

void Divider::fill_fair(std::span<Share> shares) {
  const auto weight_of = [](const Share& share) { return share.demand->weight * share.flows; };
  const auto cap_level_of = [](const Share& share) {
    return share.demand->rate_cap / share.demand->weight;
  };
  contended_.clear();
  capped_.clear();
  for (std::uint32_t i = 0; i < shares.size(); ++i) {
    for (const CapacityId c : shares[i].demand->capacities) {
      std::vector<std::uint32_t>& users = users_[c.index()];
      if (users.empty()) {
        contended_.push_back(c.index());
        weight_[c.index()] = 0;
        open_users_[c.index()] = 0;
      }
      users.push_back(i);
      ++open_users_[c.index()];
      weight_[c.index()] += weight_of(shares[i]);
    }
    if (shares[i].demand->rate_cap < kInfinity) capped_.push_back(i);
  }
  // Open shares are those not yet fixed.
  is_open_.assign(shares.size(), 1);
  // The level (rate per unit of weight) at which the open shares of a capacity use it up.
  const auto level_of = [&](std::uint32_t c) { return std::max(0.0, left_[c]) / weight_[c]; };
  while (!contended_.empty()) {
    double level = kInfinity;
    for (const std::uint32_t c : contended_) level = std::min(level, level_of(c));
    for (const std::uint32_t i : capped_) level = std::min(level, cap_level_of(shares[i]));
    // Rounding must not leave a share of the same bottleneck for another turn.
    const double limit = level * (1 + 1e-12);
    fixed_.clear();
    const auto fix = [&](std::uint32_t i) {
      if (std::exchange(is_open_[i], 0)) fixed_.push_back(i);
    };
    for (const std::uint32_t c : contended_)
      if (level_of(c) <= limit)
        for (const std::uint32_t i : users_[c]) fix(i);
    for (const std::uint32_t i : capped_)
      if (cap_level_of(shares[i]) <= limit) fix(i);
    std::sort(fixed_.begin(), fixed_.end());
    for (const std::uint32_t i : fixed_) {
      Share& share = shares[i];
      share.rate = level * share.demand->weight;
      for (const CapacityId c : share.demand->capacities) {
        left_[c.index()] -= level * weight_of(share);
        weight_[c.index()] -= weight_of(share);
        --open_users_[c.index()];
      }
    }
    std::erase_if(capped_, [&](std::uint32_t i) { return !is_open_[i]; });
    std::erase_if(contended_, [&](std::uint32_t c) {
      if (open_users_[c] > 0) return false;
      users_[c].clear();
      return true;
    });
  }
}

double Divider::most_for(const Share& share) const {
  double most = share.demand->rate_cap;
  for (const CapacityId c : share.demand->capacities) most = std::min(most, left_[c.index()]);
  return std::max(0.0, most);
}

void Divider::take(Share& share, double rate) {
  share.rate = rate;
  for (const CapacityId c : share.demand->capacities) left_[c.index()] -= rate;
}

void Divider::fill_groups(std::span<Share> shares, Division division) {
  // How long the group needs with what is left; infinite where some capacity has nothing.
  std::vector<double>& load = weight_;
  const auto time_alone = [&](const Group& group) {
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) load[c.index()] = 0;
    double time = 0;
    for (const Share* share : group.shares) {
      time = std::max(time, share->remaining / share->demand->rate_cap);
      for (const CapacityId c : share->demand->capacities) {
        load[c.index()] += share->remaining;
        time =
            std::max(time, left_[c.index()] > 0 ? load[c.index()] / left_[c.index()] : kInfinity);
      }
    }
    return time;
  };
  // How late its latest flow is when those due first go first.
  const auto tardiness_alone = [&](const Group& group) {
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) load[c.index()] = 0;
    double tardiness = -kInfinity;
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) {
        load[c.index()] += share->remaining;
        const double end = left_[c.index()] > 0 ? load[c.index()] / left_[c.index()] : kInfinity;
        tardiness = std::max(tardiness, end - share->due);
      }
    return tardiness;
  };

  std::vector<Group> groups = groups_of(shares);
  const bool coflow = division == Division::kCoflow;
  for (Group& group : groups) {
    if (!coflow)
      std::stable_sort(group.shares.begin(), group.shares.end(),
                       [](const Share* a, const Share* b) { return a->due < b->due; });
    group.rank = coflow ? time_alone(group) : tardiness_alone(group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.rank < b.rank; });
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
           time > 0 ? std::min(share->remaining / time, most_for(*share)) : most_for(*share));
  }
  for (Group* group : starved)
    for (Share* share : group->shares) take(*share, most_for(*share));
}

}  // namespace rehearse::engine
