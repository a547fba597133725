// Progressive filling (division.h), from the start or from one of its steps.
#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/engine/division.h"

namespace rehearse::engine {
namespace {

constexpr double kNoLevel = std::numeric_limits<double>::infinity();

/// The number of levels whose least is kept, so that fewer are compared.
constexpr std::size_t kBlock = 8;

double own_level(const Share& share) { return share.demand->rate_cap / share.weight; }

}  // namespace

void Divider::begin_filling(const std::vector<Share>& shares,
                            std::span<const std::uint32_t> classes, Filling& filling) {
  if (is_open_.size() < shares.size()) is_open_.resize(shares.size(), 0);
  filling.used.clear();
  filling.capped.clear();
  filling.taken.clear();
  filling.next_capped = 0;
  filling.open = classes.size();
  for (const std::uint32_t i : classes) {
    const Share& share = shares[i];
    const std::uint32_t demand = share.id.index();
    is_open_[i] = 1;
    const double weight = share.weight * share.flows;
    for (std::uint32_t k = first_capacity_[demand]; k < first_capacity_[demand + 1]; ++k) {
      Use& use = use_[capacities_[k].index()];
      if (use.open++ == 0) {
        use.weight = 0;
        use.place = static_cast<std::uint32_t>(filling.used.size());
        filling.used.push_back(capacities_[k].index());
      }
      use.weight += weight * taken_[k];
    }
    if (share.demand->rate_cap < kNoLevel) filling.capped.push_back(i);
  }
  std::ranges::sort(filling.capped, [&](std::uint32_t a, std::uint32_t b) {
    return own_level(shares[a]) < own_level(shares[b]);
  });
}

void Divider::reopen(Filling& filling, std::size_t step) {
  REHEARSE_CHECK(filling.repeatable && filling.open == 0, "a filling that cannot be repeated");
  const Filling::Step from = filling.steps[step];
  while (filling.taken.size() > from.first_taken) {
    const Filling::Taken& taken = filling.taken.back();
    Use& use = use_[taken.capacity];
    use.left = taken.left;
    use.weight += taken.weight;
    use.open += taken.open;
    filling.taken.pop_back();
  }
  filling.open = filling.fixed.size() - from.first_fixed;
  for (std::size_t i = from.first_fixed; i < filling.fixed.size(); ++i)
    is_open_[filling.fixed[i]] = 1;
  filling.fixed.resize(from.first_fixed);
  filling.next_capped = from.first_capped;
  filling.steps.resize(step);
}

void Divider::reduce(Share& share, std::uint32_t number, double flows, Filling& filling) {
  const double weight = share.weight * (share.flows - flows);
  const std::uint32_t demand = share.id.index();
  for (std::uint32_t k = first_capacity_[demand]; k < first_capacity_[demand + 1]; ++k) {
    Use& use = use_[capacities_[k].index()];
    use.weight -= weight * taken_[k];
    if (flows == 0) --use.open;
  }
  share.flows = flows;
  if (flows > 0) return;
  is_open_[number] = 0;
  --filling.open;
}

void Divider::fill(std::vector<Share>& shares, Picoseconds now, Filling& filling) {
  // The level of a capacity is a rate per unit of weight. It is cached, because fixing a share
  // changes only the levels of its own capacities.
  std::vector<double>& levels = filling.level;
  levels.clear();
  for (const std::uint32_t c : filling.used) levels.push_back(use_[c].level());
  levels.resize((filling.used.size() + kBlock - 1) / kBlock * kBlock, kNoLevel);

  const bool repeatable = filling.repeatable;
  std::size_t open = filling.open, next_capped = filling.next_capped;
  Filling::Step step;
  const auto next_cap = [&] { return own_level(shares[filling.capped[next_capped]]); };
  /// Fixes a share at `level`. Its use of capacity `own`, whose shares are all fixed at once, is
  /// subtracted only from `left`.
  const auto fix = [&](std::uint32_t i, double level, std::uint32_t own, double& left) {
    if (!is_open_[i]) return;
    is_open_[i] = 0;
    --open;
    filling.fixed.push_back(i);
    Share& share = shares[i];
    share.advance(now);
    share.rate = level * share.weight;
    step.add(share);
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
      if (repeatable) filling.taken.push_back({use.left, units_taken, c, 1});
      use.left -= level * units_taken;
      use.weight -= units_taken;
      --use.open;
      levels[use.place] = use.level();
    }
  };
  while (open > 0) {
    step = {.first_fixed = static_cast<std::uint32_t>(filling.fixed.size()),
            .first_taken = static_cast<std::uint32_t>(filling.taken.size()),
            .first_capped = static_cast<std::uint32_t>(next_capped),
            .fixed_at = now};
    double level = kNoLevel;
    block_level_.clear();
    for (std::size_t first = 0; first < levels.size(); first += kBlock) {
      double lowest[kBlock / 2];
      for (std::size_t i = 0; i < kBlock / 2; ++i)
        lowest[i] = std::min(levels[first + i], levels[first + kBlock / 2 + i]);
      block_level_.push_back(
          std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3])));
      level = std::min(level, block_level_.back());
    }
    while (next_capped < filling.capped.size() && !is_open_[filling.capped[next_capped]])
      ++next_capped;
    if (next_capped < filling.capped.size()) level = std::min(level, next_cap());
    // Rounding must not leave a share of the same bottleneck for another turn.
    const double limit = level * (1 + 1e-12);
    tightest_.clear();
    for (std::size_t block = 0; block < block_level_.size(); ++block) {
      if (block_level_[block] > limit) continue;
      for (std::size_t place = block * kBlock; place < (block + 1) * kBlock; ++place)
        if (levels[place] <= limit && place < filling.used.size())
          tightest_.push_back(filling.used[place]);
    }
    double none = 0;
    for (; next_capped < filling.capped.size() && next_cap() <= limit; ++next_capped)
      fix(filling.capped[next_capped], level, UINT32_MAX, none);
    for (const std::uint32_t c : tightest_) {
      // Without a branch, because which of them are open is as good as random.
      const std::vector<std::uint32_t>& users = users_[c];
      if (open_.size() < users.size()) open_.resize(users.size());
      std::size_t count = 0;
      for (const std::uint32_t user : users) {
        open_[count] = user;
        count += is_open_[user];
      }
      Use& use = use_[c];
      double left = use.left;
      for (std::size_t i = 0; i < count; ++i) fix(open_[i], level, c, left);
      if (repeatable) filling.taken.push_back({use.left, 0, c, use.open});
      use.left = left;
      use.open = 0;
      levels[use.place] = kNoLevel;
    }
    filling.steps.push_back(step);
  }
  filling.open = 0;
}

}  // namespace rehearse::engine
