#include "strategies/prices.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

namespace rehearse::strategies {

std::vector<std::uint32_t> ranks_of(const workload::Stage& stage) {
  std::vector<std::uint32_t> ranks(stage.degrees.ranks());
  for (std::uint32_t r = 0; r < ranks.size(); ++r) ranks[r] = stage.rank(r);
  return ranks;
}

std::vector<std::uint32_t> ranks_of(const workload::Servers& servers) {
  std::vector<std::uint32_t> ranks(servers.count);
  std::iota(ranks.begin(), ranks.end(), servers.first_rank);
  return ranks;
}

std::vector<std::uint32_t> kinds_of(const Prices& prices, std::span<const std::uint32_t> ranks) {
  std::vector<std::uint32_t> kinds;
  for (const std::uint32_t rank : ranks)
    if (const std::uint32_t kind = prices.kind_of(rank);
        std::ranges::find(kinds, kind) == kinds.end())
      kinds.push_back(kind);
  return kinds;
}

Result<Seconds> copy_time(const workload::Op& copy, const KindPrice& price) {
  if (!price.host_rate)
    return fail(fmt::format("'{}' copies between device and host", copy.name),
                "the rate of the link to the host");
  const Seconds time = copy.bytes / *price.host_rate;
  return price.nvme_rate ? std::max(time, copy.nvme / *price.nvme_rate) : time;
}

}  // namespace rehearse::strategies
