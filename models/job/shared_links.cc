#include "models/job/shared_links.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

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
  std::vector<Row> rows;
  std::vector<std::uint32_t> row_of;  // by number of the link
  for (std::uint32_t f = 0; f < concurrent_sets_.size(); ++f)
    for (const Loaded& link : concurrent_sets_[f].links) {
      if (link.link >= row_of.size()) row_of.resize(link.link + 1, UINT32_MAX);
      std::uint32_t& row = row_of[link.link];
      if (row == UINT32_MAX) {
        row = static_cast<std::uint32_t>(rows.size());
        rows.push_back({link.rate, {}});
      }
      rows[row].users.push_back({f, link.messages / link.rate.bytes_per_s()});
    }
  const auto hash = [](const Row& row) {
    std::uint64_t mixed = 0;
    for (const User& user : row.users) {
      mixed = (mixed ^ user.concurrent_set) * 0x9e3779b97f4a7c15ULL;
      mixed = (mixed ^ std::bit_cast<std::uint64_t>(user.share)) * 0x9e3779b97f4a7c15ULL;
      mixed ^= mixed >> 32;
    }
    return mixed;
  };
  std::unordered_multimap<std::uint64_t, std::size_t> known;
  std::vector<Row> distinct;
  for (Row& row : rows) {
    const std::uint64_t key = hash(row);
    const auto [first, last] = known.equal_range(key);
    const auto same = [&](const auto& other) { return distinct[other.second].users == row.users; };
    if (std::any_of(first, last, same)) continue;
    known.emplace(key, distinct.size());
    distinct.push_back(std::move(row));
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
    if (std::any_of(fullest.begin(), fullest.end(), fuller)) continue;
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
