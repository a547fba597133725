#include "sim/graph/message_flows.h"

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

MessageFlows::MessageFlows(std::uint32_t members, std::vector<MessageFlow> flows,
                           std::vector<Wait> waits)
    : members_(members), flows_(std::move(flows)), waits_(std::move(waits)) {
  const auto count = static_cast<std::uint32_t>(flows_.size());
  for (const MessageFlow& flow : flows_)
    REHEARSE_CHECK(flow.from < members && flow.to < members && flow.from != flow.to &&
                       flow.count > 0 && flow.share >= 0,
                   "lane from {} to {} with {} messages among {} members", flow.from, flow.to,
                   flow.count, members);
  first_wait_.assign(count + 1, 0);
  std::uint32_t last = 0;
  for (const Wait& wait : waits_) {
    REHEARSE_CHECK(wait.flow >= last && wait.flow < count && wait.on < count,
                   "lane {} waits for {} of {}", wait.flow, wait.on, count);
    last = wait.flow;
    ++first_wait_[wait.flow + 1];
  }
  for (std::uint32_t flow = 0; flow < count; ++flow) first_wait_[flow + 1] += first_wait_[flow];
  group(
      count, waits_,
      [](const Wait& wait, const auto& add, std::uint32_t) { add(wait.on, wait.flow); },
      first_woken_, woken_);
  group(
      members, flows_,
      [](const MessageFlow& flow, const auto& add, std::uint32_t row) {
        add(flow.from, row);
        add(flow.to, row);
      },
      first_of_member_, of_member_);
}

std::uint64_t MessageFlows::messages() const {
  std::uint64_t sum = 0;
  for (const MessageFlow& flow : flows_) sum += flow.count;
  return sum;
}

double MessageFlows::share_sent(std::uint32_t member) const {
  double sum = 0;
  for (const MessageFlow& flow : flows_)
    if (flow.from == member) sum += flow.share * flow.count;
  return sum;
}

}  // namespace rehearse::graph
