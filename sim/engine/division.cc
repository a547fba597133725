#include "sim/engine/division.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

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
  // Which shares use each capacity, as rows of one table.
  used_.clear();
  for (const Share& share : shares) {
    const double weight = weight_of(share);
    for (std::size_t k = 0; k < share.demand->capacities.size(); ++k) {
      const std::uint32_t c = share.demand->capacities[k].index();
      Use& use = use_[c];
      if (use.open++ == 0) {
        use.weight = 0;
        used_.push_back(c);
      }
      use.weight += weight * share.demand->taken(k);
    }
  }
  std::uint32_t rows = 0;
  for (const std::uint32_t c : used_) {
    use_[c].first = use_[c].end = rows;
    rows += use_[c].open;
  }
  users_.resize(rows);
  for (std::uint32_t i = 0; i < shares.size(); ++i)
    for (const CapacityId c : shares[i].demand->capacities) users_[use_[c.index()].end++] = i;

  // Shares with a cap of their own, the tightest first.
  capped_.clear();
  for (std::uint32_t i = 0; i < shares.size(); ++i)
    if (shares[i].demand->rate_cap < kInfinity) capped_.push_back(i);
  const auto own_level = [&](std::uint32_t i) {
    return shares[i].demand->rate_cap / shares[i].demand->weight;
  };
  std::sort(capped_.begin(), capped_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return own_level(a) < own_level(b); });
  std::size_t next_capped = 0;

  is_fixed_.assign(shares.size(), 0);
  std::size_t open = shares.size();
  const auto fix = [&](std::uint32_t i, double level) {
    if (is_fixed_[i]) return;
    is_fixed_[i] = 1;
    --open;
    shares[i].rate = level * shares[i].demand->weight;
    const double weight = weight_of(shares[i]);
    for (std::size_t k = 0; k < shares[i].demand->capacities.size(); ++k) {
      const std::uint32_t c = shares[i].demand->capacities[k].index();
      const double taken = weight * shares[i].demand->taken(k);
      left_[c] -= level * taken;
      use_[c].weight -= taken;
      --use_[c].open;
    }
  };
  // The level is a rate per unit of weight.
  const auto level_of = [&](std::uint32_t c) { return std::max(0.0, left_[c]) / use_[c].weight; };
  while (open > 0) {
    double level = kInfinity;
    std::erase_if(used_, [&](std::uint32_t c) { return use_[c].open == 0; });
    for (const std::uint32_t c : used_) level = std::min(level, level_of(c));
    while (next_capped < capped_.size() && is_fixed_[capped_[next_capped]]) ++next_capped;
    if (next_capped < capped_.size()) level = std::min(level, own_level(capped_[next_capped]));
    // Rounding must not leave a share of the same bottleneck for another turn.
    const double limit = level * (1 + 1e-12);
    tightest_.clear();
    for (const std::uint32_t c : used_)
      if (level_of(c) <= limit) tightest_.push_back(c);
    for (; next_capped < capped_.size() && own_level(capped_[next_capped]) <= limit; ++next_capped)
      fix(capped_[next_capped], level);
    for (const std::uint32_t c : tightest_)
      for (std::uint32_t row = use_[c].first; row < use_[c].end; ++row) fix(users_[row], level);
  }
  for (const std::uint32_t c : used_) use_[c].open = 0;
}

double Divider::most_for(const Share& share) const {
  double most = share.demand->rate_cap;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    most = std::min(most, left_[capacities[k].index()] / share.demand->taken(k));
  return std::max(0.0, most);
}

void Divider::take(Share& share, double rate) {
  share.rate = rate;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    left_[capacities[k].index()] -= rate * share.demand->taken(k);
}

void Divider::fill_groups(std::span<Share> shares, Division division) {
  // How long the group needs with what is left; infinite where some capacity has nothing.
  std::vector<double>& load = load_;
  const auto time_alone = [&](const Group& group) {
    for (const Share* share : group.shares)
      for (const CapacityId c : share->demand->capacities) load[c.index()] = 0;
    double time = 0;
    for (const Share* share : group.shares) {
      time = std::max(time, share->remaining / share->demand->rate_cap);
      for (std::size_t k = 0; k < share->demand->capacities.size(); ++k) {
        const std::uint32_t c = share->demand->capacities[k].index();
        load[c] += share->remaining * share->demand->taken(k);
        const double end = left_[c] > 0 ? load[c] / left_[c] : kInfinity;
        time = std::max(time, end);
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
      for (std::size_t k = 0; k < share->demand->capacities.size(); ++k) {
        const std::uint32_t c = share->demand->capacities[k].index();
        load[c] += share->remaining * share->demand->taken(k);
        const double end = left_[c] > 0 ? load[c] / left_[c] : kInfinity;
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
