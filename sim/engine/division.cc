#include "sim/engine/division.h"

#include <algorithm>
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

/// The number of levels whose least is kept, so that fewer are compared.
constexpr std::size_t kBlock = 8;

}  // namespace

Divider::Divider(const graph::Graph& graph, const std::vector<std::vector<std::uint32_t>>& users)
    : users_(users),
      left_(graph.capacities().size()),
      use_(graph.capacities().size()),
      load_(graph.capacities().size()) {
  first_capacity_.push_back(0);
  for (const graph::Demand& demand : graph.demands()) {
    for (std::size_t k = 0; k < demand.capacities.size(); ++k) {
      capacities_.push_back(demand.capacities[k]);
      taken_.push_back(demand.units_taken(k));
    }
    first_capacity_.push_back(static_cast<std::uint32_t>(capacities_.size()));
  }
}

void Divider::divide(std::vector<Share>& shares, std::span<const std::uint32_t> classes,
                     Division division) {
  for (std::size_t first = 0; first < classes.size();) {
    const std::int32_t priority = shares[classes[first]].priority;
    std::size_t stop = first;
    while (stop < classes.size() && shares[classes[stop]].priority == priority) ++stop;
    const auto equal = classes.subspan(first, stop - first);
    if (division == Division::kCoflow || division == Division::kEchelon) {
      equal_.clear();
      for (const std::uint32_t c : equal) equal_.push_back(&shares[c]);
      fill_groups(equal_, division);
    } else {
      fill_fair(shares, equal);
    }
    first = stop;
  }
}

void Divider::fill_fair(std::vector<Share>& shares, std::span<const std::uint32_t> classes) {
  if (is_open_.size() < shares.size()) is_open_.resize(shares.size(), 0);
  used_.clear();
  level_.clear();
  capped_.clear();
  for (const std::uint32_t i : classes) {
    const Share& share = shares[i];
    const std::uint32_t demand = share.id.index();
    is_open_[i] = 1;
    const double weight = share.weight * share.flows;
    for (std::uint32_t k = first_capacity_[demand]; k < first_capacity_[demand + 1]; ++k) {
      Use& use = use_[capacities_[k].index()];
      if (use.open++ == 0) {
        use.weight = 0;
        use.place = static_cast<std::uint32_t>(used_.size());
        used_.push_back(capacities_[k].index());
      }
      use.weight += weight * taken_[k];
    }
    if (share.demand->rate_cap < kInfinity) capped_.push_back(i);
  }
  // The level of a capacity is a rate per unit of weight. It is cached, because fixing a share
  // changes only the levels of its own capacities.
  const auto level_of = [&](std::uint32_t c) { return std::max(0.0, left_[c]) / use_[c].weight; };
  for (const std::uint32_t c : used_) level_.push_back(level_of(c));
  level_.resize((used_.size() + kBlock - 1) / kBlock * kBlock, kInfinity);

  // Shares with a cap of their own, the tightest first.
  const auto own_level = [&](std::uint32_t i) {
    return shares[i].demand->rate_cap / shares[i].weight;
  };
  std::sort(capped_.begin(), capped_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return own_level(a) < own_level(b); });
  std::size_t next_capped = 0;

  std::size_t open = classes.size();
  /// Fixes a share at `level`. Its use of capacity `own`, whose shares are all fixed at once, is
  /// subtracted only from `left`.
  const auto fix = [&](std::uint32_t i, double level, std::uint32_t own, double& left) {
    if (!is_open_[i]) return;
    is_open_[i] = 0;
    --open;
    Share& share = shares[i];
    share.rate = level * share.weight;
    const double weight = share.weight * share.flows;
    const std::uint32_t demand = share.id.index();
    for (std::uint32_t k = first_capacity_[demand]; k < first_capacity_[demand + 1]; ++k) {
      const std::uint32_t c = capacities_[k].index();
      const double units_taken = weight * taken_[k];
      if (c == own) {
        left -= level * units_taken;
        continue;
      }
      Use& use = use_[c];
      left_[c] -= level * units_taken;
      use.weight -= units_taken;
      level_[use.place] = --use.open > 0 ? level_of(c) : kInfinity;
    }
  };
  while (open > 0) {
    double level = kInfinity;
    block_level_.clear();
    for (std::size_t first = 0; first < level_.size(); first += kBlock) {
      double lowest[kBlock / 2];
      for (std::size_t i = 0; i < kBlock / 2; ++i)
        lowest[i] = std::min(level_[first + i], level_[first + kBlock / 2 + i]);
      block_level_.push_back(
          std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3])));
      level = std::min(level, block_level_.back());
    }
    while (next_capped < capped_.size() && !is_open_[capped_[next_capped]]) ++next_capped;
    if (next_capped < capped_.size()) level = std::min(level, own_level(capped_[next_capped]));
    // Rounding must not leave a share of the same bottleneck for another turn.
    const double limit = level * (1 + 1e-12);
    tightest_.clear();
    for (std::size_t block = 0; block < block_level_.size(); ++block) {
      if (block_level_[block] > limit) continue;
      for (std::size_t place = block * kBlock; place < (block + 1) * kBlock; ++place)
        if (level_[place] <= limit && place < used_.size()) tightest_.push_back(used_[place]);
    }
    double none = 0;
    for (; next_capped < capped_.size() && own_level(capped_[next_capped]) <= limit; ++next_capped)
      fix(capped_[next_capped], level, UINT32_MAX, none);
    for (const std::uint32_t c : tightest_) {
      double left = left_[c];
      for (const std::uint32_t user : users_[c]) fix(user, level, c, left);
      left_[c] = left;
      use_[c].open = 0;
      level_[use_[c].place] = kInfinity;
    }
  }
}

double Divider::most_for(const Share& share) const {
  double most = share.demand->rate_cap;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    most = std::min(most, left_[capacities[k].index()] / share.demand->units_taken(k));
  return std::max(0.0, most);
}

void Divider::take(Share& share, double rate) {
  share.rate = rate;
  const std::vector<CapacityId>& capacities = share.demand->capacities;
  for (std::size_t k = 0; k < capacities.size(); ++k)
    left_[capacities[k].index()] -= rate * share.demand->units_taken(k);
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
      time = std::max(time, share->remaining / share->demand->rate_cap);
      for (std::size_t k = 0; k < share->demand->capacities.size(); ++k) {
        const std::uint32_t c = share->demand->capacities[k].index();
        load[c] += share->remaining * share->demand->units_taken(k);
        const double end = left_[c] > 0 ? load[c] / left_[c] : kInfinity;
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
        load[c] += share->remaining * share->demand->units_taken(k);
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
