#include "sim/fleet/waiting.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace rehearse::fleet {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

FirstShort::FirstShort(std::vector<Rank> ranks)
    : ranks_(std::move(ranks)),
      leaves_(std::bit_ceil(std::max<std::size_t>(ranks_.size(), 1))),
      least_(2 * leaves_, kNever) {}

void FirstShort::set(Rank rank, std::optional<Nanoseconds> time) {
  const auto at = std::ranges::lower_bound(ranks_, rank);
  std::size_t node = leaves_ + static_cast<std::size_t>(at - ranks_.begin());
  least_[node] = time ? time->count() : kNever;
  for (node /= 2; node > 0; node /= 2)
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
}

bool FirstShort::empty() const { return least_[1] == kNever; }

std::optional<std::size_t> FirstShort::search(std::size_t node, std::size_t begin, std::size_t end,
                                              std::size_t from, std::int64_t most) const {
  if (end <= from || least_[node] > most) return std::nullopt;
  if (end - begin == 1) return begin;
  const std::size_t middle = (begin + end) / 2;
  if (const auto left = search(2 * node, begin, middle, from, most)) return left;
  return search(2 * node + 1, middle, end, from, most);
}

std::optional<Rank> FirstShort::first(Rank from, Nanoseconds most) const {
  const auto at = std::ranges::lower_bound(ranks_, from);
  const auto found = search(1, 0, leaves_, static_cast<std::size_t>(at - ranks_.begin()),
                            std::min(most.count(), kNever - 1));
  return found ? std::optional(ranks_[*found]) : std::nullopt;
}

void Shares::wait(std::uint32_t user, Rank rank) {
  User& u = users_[user];
  if (u.running == 0 && u.waiting.empty()) {
    if (!active_.empty()) u.charged = std::max(u.charged, active_.begin()->first);
    active_.emplace(u.charged, user);
  }
  if (!u.waiting.empty()) first_.erase({u.charged, *u.waiting.begin(), user});
  u.waiting.insert(rank);
  first_.emplace(u.charged, *u.waiting.begin(), user);
}

void Shares::start(std::uint32_t user, Rank rank, std::int64_t cost) {
  User& u = users_[user];
  active_.erase({u.charged, user});
  first_.erase({u.charged, *u.waiting.begin(), user});
  u.waiting.erase(rank);
  ++u.running;
  u.charged += cost;
  active_.emplace(u.charged, user);
  if (!u.waiting.empty()) first_.emplace(u.charged, *u.waiting.begin(), user);
}

void Shares::end(std::uint32_t user) {
  User& u = users_[user];
  if (--u.running == 0 && u.waiting.empty()) active_.erase({u.charged, user});
}

Rank Shares::front() const { return std::get<1>(*first_.begin()); }

}  // namespace rehearse::fleet
