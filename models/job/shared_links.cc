#include "models/job/shared_links.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include "sim/base/check.h"

namespace rehearse::job {

/// Sums of shares of messages differ by rounding.
constexpr double kRounding = 1e-9;

std::uint32_t SharedLinks::add(std::vector<Loaded> links, std::optional<std::uint32_t> stream,
                               ByteRate most) {
  REHEARSE_CHECK(!links.empty(), "a concurrent group that uses no link");
  for (const Loaded& link : links) most = std::min(most, link.rate / link.messages);
  concurrent_sets_.push_back({std::move(links), stream, most});
  return static_cast<std::uint32_t>(concurrent_sets_.size() - 1);
}

/// The loaded links; equal ones only once.
std::vector<SharedLinks::Row> SharedLinks::rows() const {
  struct Used {
    ByteRate rate;
    std::uint64_t hash = 0;
    std::size_t first = 0, count = 0;  // of all users
  };
  std::vector<Used> used;                // by first use
  std::vector<std::uint32_t> number_of;  // in `used`, by number of the link
  const auto each = [&](auto visit) {
    for (std::uint32_t f = 0; f < concurrent_sets_.size(); ++f)
      for (const Loaded& link : concurrent_sets_[f].links)
        visit(link, User{f, link.messages / link.rate.bytes_per_s()});
  };
  each([&](const Loaded& link, const User& user) {
    if (link.link >= number_of.size()) number_of.resize(link.link + 1, UINT32_MAX);
    std::uint32_t& number = number_of[link.link];
    if (number == UINT32_MAX) {
      number = static_cast<std::uint32_t>(used.size());
      used.push_back({link.rate});
    }
    Used& row = used[number];
    ++row.count;
    row.hash = (row.hash ^ user.concurrent_set) * 0x9e3779b97f4a7c15ULL;
    row.hash = (row.hash ^ std::bit_cast<std::uint64_t>(user.share)) * 0x9e3779b97f4a7c15ULL;
    row.hash ^= row.hash >> 32;
  });
  std::size_t count = 0;
  for (Used& row : used) {
    row.first = count;
    count += std::exchange(row.count, 0);
  }
  std::vector<User> users(count);
  each([&](const Loaded& link, const User& user) {
    Used& row = used[number_of[link.link]];
    users[row.first + row.count++] = user;
  });
  std::unordered_multimap<std::uint64_t, std::size_t> known;
  std::vector<Row> distinct;
  for (const Used& row : used) {
    const std::span<const User> of_row = std::span(users).subspan(row.first, row.count);
    const auto [first, last] = known.equal_range(row.hash);
    const auto same = [&](const auto& other) {
      return std::ranges::equal(distinct[other.second].users, of_row);
    };
    if (std::any_of(first, last, same)) continue;
    known.emplace(row.hash, distinct.size());
    distinct.push_back({row.rate, {of_row.begin(), of_row.end()}});
  }
  return distinct;
}

bool SharedLinks::can_be_full(const Row& row) const {
  // For each stream, the concurrent set with the largest load counts. A set without a stream may
  // take any amount.
  std::map<std::uint32_t, double> of_stream;
  for (const User& user : row.users) {
    const Member& concurrent_set = concurrent_sets_[user.concurrent_set];
    if (!concurrent_set.stream) return true;
    double& most = of_stream[*concurrent_set.stream];
    most = std::max(most, user.share * concurrent_set.alone.bytes_per_s());
  }
  double sum = 0;
  for (const auto& [stream, share] : of_stream) sum += share;
  return sum > 1 + kRounding;
}

/// Whether a link is never more loaded than another.
bool SharedLinks::below(const Row& row, const Row& other) {
  auto theirs = other.users.begin();
  for (const User& ours : row.users) {
    while (theirs != other.users.end() && theirs->concurrent_set < ours.concurrent_set) ++theirs;
    if (theirs == other.users.end() || theirs->concurrent_set != ours.concurrent_set ||
        ours.share > theirs->share * (1 + kRounding))
      return false;
  }
  return true;
}

SharedLinks::Shared SharedLinks::shared() const {
  std::vector<Row> rows = this->rows();
  std::erase_if(rows, [this](const Row& row) { return !can_be_full(row); });
  std::vector<const Row*> fullest;
  for (const Row& row : rows) {
    const auto fuller = [&](const Row* other) { return below(row, *other); };
    if (std::ranges::any_of(fullest, fuller)) continue;
    std::erase_if(fullest, [&](const Row* other) { return below(*other, row); });
    fullest.push_back(&row);
  }
  Shared result;
  for (const Member& concurrent_set : concurrent_sets_)
    result.concurrent_sets.push_back({concurrent_set.alone, {}});
  for (const Row* row : fullest) {
    const auto index = static_cast<std::uint32_t>(result.links.size());
    result.links.push_back(row->rate);
    for (const User& user : row->users)
      result.concurrent_sets[user.concurrent_set].taken.push_back(
          {index, user.share * row->rate.bytes_per_s()});
  }
  return result;
}

}  // namespace rehearse::job
