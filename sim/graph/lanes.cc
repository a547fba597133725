#include "sim/graph/lanes.h"

#include "sim/base/check.h"

namespace rehearse::graph {
namespace {

/// Rows grouped by key: offsets by key, and the rows in their order.
template <class Rows, class Keys>
void group(std::uint32_t keys, const Rows& rows, const Keys& keys_of,
           std::vector<std::uint32_t>& first, std::vector<std::uint32_t>& grouped) {
  first.assign(keys + 1, 0);
  const auto each = [&](const auto& visit) {
    for (std::uint32_t row = 0; row < rows.size(); ++row)
      keys_of(
          rows[row], [&](std::uint32_t key, std::uint32_t value) { visit(key, value); }, row);
  };
  each([&](std::uint32_t key, std::uint32_t) { ++first[key + 1]; });
  for (std::uint32_t key = 0; key < keys; ++key) first[key + 1] += first[key];
  grouped.assign(first.back(), 0);
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  each([&](std::uint32_t key, std::uint32_t value) { grouped[next[key]++] = value; });
}

}  // namespace

Lanes::Lanes(std::uint32_t members, std::vector<Lane> lanes, std::vector<Wait> waits)
    : members_(members), lanes_(std::move(lanes)), waits_(std::move(waits)) {
  const auto count = static_cast<std::uint32_t>(lanes_.size());
  for (const Lane& lane : lanes_)
    REHEARSE_CHECK(lane.from < members && lane.to < members && lane.from != lane.to &&
                       lane.count > 0 && lane.share >= 0,
                   "lane from {} to {} with {} messages among {} members", lane.from, lane.to,
                   lane.count, members);
  first_wait_.assign(count + 1, 0);
  std::uint32_t last = 0;
  for (const Wait& wait : waits_) {
    REHEARSE_CHECK(wait.lane >= last && wait.lane < count && wait.on < count,
                   "lane {} waits for {} of {}", wait.lane, wait.on, count);
    last = wait.lane;
    ++first_wait_[wait.lane + 1];
  }
  for (std::uint32_t lane = 0; lane < count; ++lane) first_wait_[lane + 1] += first_wait_[lane];
  group(
      count, waits_,
      [](const Wait& wait, const auto& add, std::uint32_t) { add(wait.on, wait.lane); },
      first_woken_, woken_);
  group(
      members, lanes_,
      [](const Lane& lane, const auto& add, std::uint32_t row) {
        add(lane.from, row);
        add(lane.to, row);
      },
      first_of_member_, of_member_);
}

std::uint64_t Lanes::messages() const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.count;
  return sum;
}

double Lanes::share_sent(std::uint32_t member) const {
  double sum = 0;
  for (const Lane& lane : lanes_)
    if (lane.from == member) sum += lane.share * lane.count;
  return sum;
}

double Lanes::share_received(std::uint32_t member) const {
  double sum = 0;
  for (const Lane& lane : lanes_)
    if (lane.to == member) sum += lane.share * lane.count;
  return sum;
}

}  // namespace rehearse::graph
