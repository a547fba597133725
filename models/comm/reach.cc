#include "models/comm/reach.h"

#include <algorithm>
#include <cmath>

#include "models/comm/nccl_tuning.h"
#include "models/comm/tcp.h"

namespace rehearse::comm {
namespace {

/// The median of what eight clusters on InfiniBand and RoCE took longer than NCCL's constants and
/// the rate of the NICs for all-reduces of 1 to 16 MiB, by hop; from less than nothing to 50 us.
constexpr Seconds kHop = Seconds::us(10);

}  // namespace

Reach reach_of(const Network& network) {
  switch (network.kind) {
    case NetworkKind::kInfiniband: return {0.9, 0.15, 0.9, Seconds::s(0), kHop};
    case NetworkKind::kRoce: return {0.87, 0.15, 0.87, Seconds::s(0), kHop};
    case NetworkKind::kEfa: return {0.8, 0.9, 0.35, Seconds::us(43) * network.step_scale};
    case NetworkKind::kOmniPath: return {0.3, 2, 0.3};
    case NetworkKind::kTcp: break;
  }
  if (!std::isfinite(network.node_rate.bytes_per_s())) return {1, 0, 1};
  const Estimate<ByteRate> rate = tcp_rate(network.node_rate, network.nics);
  const double share = rate.value / network.node_rate;
  return {share, std::max(rate.high / rate.value, rate.value / rate.low) - 1, share};
}

ByteRate message_rate(const Network& network) {
  return network.node_rate * reach_of(network).share;
}

ByteRate ring_rate(const Network& network) {
  const Reach reach = reach_of(network);
  return network.node_rate * (network.part < 1 ? reach.part_share : reach.share);
}

Seconds message_step(const Network& network, std::size_t protocol) {
  return network.latency + Seconds::us(nccl::kNetworkLatency[0][protocol]);
}

}  // namespace rehearse::comm
