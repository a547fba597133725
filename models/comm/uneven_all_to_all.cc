#include <algorithm>

#include "models/comm/schedule.h"
#include "sim/base/check.h"

namespace rehearse::comm {

using graph::MessageFlow, graph::MessageFlows, graph::Wait;

Schedule uneven_all_to_all(const std::vector<std::vector<double>>& shares) {
  const auto n = static_cast<std::uint32_t>(shares.size());
  std::vector<MessageFlow> flows;
  std::vector<double> in(n, 0);
  std::vector<std::uint32_t> sent(n, 0), received(n, 0);
  double busiest = 0;
  for (std::uint32_t from = 0; from < n; ++from) {
    REHEARSE_CHECK(shares[from].size() == n, "row {} has {} of {} columns", from,
                   shares[from].size(), n);
    double out = 0;
    for (std::uint32_t to = 0; to < n; ++to) {
      if (from == to || shares[from][to] == 0) continue;
      flows.push_back({from, to, 1, shares[from][to]});
      out += shares[from][to];
      in[to] += shares[from][to];
      ++sent[from];
      ++received[to];
    }
    busiest = std::max(busiest, out);
  }
  for (const double each : in) busiest = std::max(busiest, each);
  const double steps = flows.empty() ? 0 : 1;
  std::uint32_t most = 0;
  for (const auto& counts : {sent, received})
    for (const std::uint32_t count : counts) most = std::max(most, count);
  return {.flows = std::make_shared<MessageFlows>(n, std::move(flows), std::vector<Wait>{}),
          .local = {steps, busiest, most - steps},
          .busy = busiest};
}

}  // namespace rehearse::comm
