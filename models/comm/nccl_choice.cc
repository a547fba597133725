#include "models/comm/nccl_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "models/comm/nccl_tuning.h"
#include "sim/base/check.h"

namespace rehearse::comm {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;
constexpr auto kAlgorithms = static_cast<std::size_t>(Algorithm::kPat) + 1;

std::size_t at(Generation g) { return static_cast<std::size_t>(g); }

struct Steps {
  double all;
  double between_nodes;
};

Steps ring_steps(CollectiveKind kind, double ranks, double nodes) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBarrier:  // an all-reduce of nearly nothing
      return {2 * (ranks - 1), nodes > 1 ? 2 * (nodes - 1) : 0};
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce: return {ranks, nodes > 1 ? nodes - 1 : 0};
    default: return {ranks - 1, nodes > 1 ? nodes - 1 : 0};
  }
}

bool is_reduction_of_all(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBarrier;
}
bool is_half(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

bool available(Algorithm a, Protocol p, CollectiveKind kind, const NcclSetup& s) {
  const bool several = s.nodes > 1;
  const bool one_per_node = s.nodes == s.ranks;
  if (p == Protocol::kLl128 && !s.nvlink) return false;
  // In-switch and in-network reductions, and PAT, speak Simple only.
  if (a != Algorithm::kRing && a != Algorithm::kTree && p != Protocol::kSimple) return false;
  switch (a) {
    case Algorithm::kRing: return true;
    case Algorithm::kTree: return is_reduction_of_all(kind);
    case Algorithm::kNvls:
      return s.nvls_from && !several && s.channels >= 2 && is_reduction_of_all(kind) &&
             s.generation >= Generation::kHopper;
    case Algorithm::kNvlsTree:
      return s.nvls_from && several && s.channels >= 2 && is_reduction_of_all(kind) &&
             s.generation >= Generation::kHopper;
    case Algorithm::kPat: return several && one_per_node && is_half(kind);
    default:  // none of NCCL's choices, or in-network reduction, which no network is known to have
      return false;
  }
  return false;
}

/// The nominal bandwidth on the wire of an algorithm, in GB/s.
double bus_rate(Algorithm a, Protocol p, const NcclSetup& s) {
  const std::size_t column = std::min<std::size_t>(s.nodes, 3) - 1;
  const std::size_t ll_row = at(s.nodes == 1 ? s.generation : Generation::kVolta);
  const double ll_max = nccl::kLlMaxRate[ll_row][column];
  const std::size_t g = at(s.generation);
  const double graph = std::min(s.graph_rate, s.nodes > 1 ? s.network_rate : s.graph_rate) / kGiga;
  double rate = graph;
  switch (a) {
    case Algorithm::kRing:
      if (p == Protocol::kLl) return std::min(ll_max, 0.5 * rate);
      if (p == Protocol::kLl128)
        return std::min(0.92 * rate, s.channels * nccl::kRingLl128[g][column]);
      return rate;
    case Algorithm::kTree:
      // Over two nodes NCCL counts the rate within nodes. Its search raises that of a tree to twice
      // the rate between them, because a NIC carries the data of its two devices once.
      if (s.nodes == 2) rate = std::min(s.graph_rate, 2 * s.network_rate) / kGiga;
      if (s.nodes > 1 && s.tree_rate) rate = std::min(rate, *s.tree_rate / kGiga);
      rate = std::min(0.92 * rate, s.channels * nccl::kTreeSimple[g][column]);
      if (p == Protocol::kLl) return std::min(rate / 3.8, ll_max);
      if (p == Protocol::kLl128)
        return std::min(rate * (s.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                        s.channels * nccl::kTreeLl128[g][column]);
      return rate;
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree: {
      const double inside = s.graph_rate / kGiga * nccl::kNvlsEfficiency[g] * (s.channels - 1) /
                            s.channels * 2;  // reductions only: twice
      if (a == Algorithm::kNvls) return inside;
      // Over two nodes a NIC carries the buffer once in each direction, as with trees.
      const double between = s.network_rate / kGiga * (s.nodes == 2 ? 2 : 1);
      return std::min({inside, between, s.channels * nccl::kNvlsTree[g][column]});
    }
    case Algorithm::kPat: return 0.75 * rate;
    default:  // not available
      return rate;
  }
  return rate;
}

/// The factor from wire bandwidth to algorithm bandwidth.
double algorithm_share(Algorithm a, CollectiveKind kind, double ranks, const Steps& steps) {
  switch (a) {
    case Algorithm::kRing:
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree: return ranks / steps.all;
    case Algorithm::kTree: return is_half(kind) ? 1 : 0.5;
    default: return 1;  // PAT
  }
  return 1;
}

/// In microseconds.
double latency(Algorithm a, Protocol p, const NcclSetup& s, const Steps& steps) {
  const std::size_t i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(p);
  const double base = nccl::kBaseLatency[i][j];
  double inside = (s.nvlink ? nccl::kNvlinkLatency : nccl::kPciLatency)[i][j];
  const double nic = s.network_latency / kMicro;
  const double between =
      nccl::kNetworkLatency[i][j] + (p == Protocol::kSimple ? 2 * nic : nic);  // Simple flushes
  const double nodes = s.nodes, levels = std::log2(nodes), local = s.ranks / nodes;
  switch (a) {
    case Algorithm::kRing: {
      if (s.nodes > 1)
        inside = std::max(inside, (p == Protocol::kSimple ? 3 : 1) * nccl::kNetworkOverhead);
      return base + (steps.all - steps.between_nodes) * inside + steps.between_nodes * between;
    }
    case Algorithm::kTree: return base + 2 * ((local - 1) * inside + levels * between);
    case Algorithm::kNvls: return inside + (s.nodes > 1 ? between : 0);
    case Algorithm::kNvlsTree: return base + inside + 2 * levels * between;
    case Algorithm::kPat: return base + levels * between / 3.5 + 2.8 * s.ranks;
    default:  // not available
      return base;
  }
  return base;
}

}  // namespace

NcclTuning::NcclTuning(const NcclSetup& setup, CollectiveKind kind, const NcclOverrides& overrides)
    : entries_{}, count_(0), channels_(static_cast<std::uint32_t>(std::lround(setup.channels))) {
  REHEARSE_CHECK(setup.ranks >= 1 && setup.nodes >= 1 && setup.graph_rate > 0,
                 "{} ranks on {} nodes at {} B/s", setup.ranks, setup.nodes, setup.graph_rate);
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv || setup.ranks < 2)
    return;
  const Steps steps = ring_steps(kind, setup.ranks, setup.nodes);
  for (std::size_t i = 0; i < kAlgorithms; ++i) {
    const auto a = static_cast<Algorithm>(i);
    if (overrides.algorithm && *overrides.algorithm != a) continue;
    for (const Protocol p : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      if (overrides.protocol && *overrides.protocol != p) continue;
      if (!available(a, p, kind, setup)) continue;
      const double rate = bus_rate(a, p, setup) * algorithm_share(a, kind, setup.ranks, steps);
      if (!(rate > 0)) continue;
      const bool in_switch = a == Algorithm::kNvls || a == Algorithm::kNvlsTree;
      // If requested by name, NVLS is used at every size.
      const double from = in_switch && !overrides.algorithm ? *setup.nvls_from : 0;
      add(a, p, latency(a, p, setup, steps) * kMicro, rate * kGiga, from);
    }
  }
}

void NcclTuning::add(Algorithm a, Protocol p, double latency_s, double rate, double from) {
  entries_[count_++] = {a, p, latency_s, rate, from};
}

std::optional<NcclChoice> NcclTuning::choose(double bytes) const {
  double best = std::numeric_limits<double>::infinity();
  const Entry* chosen = nullptr;
  for (const Entry& e : std::span(entries_).first(count_)) {
    if (bytes < e.from) continue;
    double rate = e.rate;
    if (e.algorithm == Algorithm::kTree && bytes >= 64) {
      const auto step = static_cast<std::size_t>(
          std::bit_width(static_cast<std::uint64_t>(std::min(bytes, 1e15)) >> 6) - 1);
      const auto& correction = nccl::kTreeCorrection[static_cast<std::size_t>(e.protocol)];
      if (step < correction.size()) rate *= correction[step];
    }
    const double time = e.latency + bytes / rate;
    if (time < best) {
      best = time;
      chosen = &e;
    }
  }
  if (!chosen) return std::nullopt;
  return NcclChoice{chosen->algorithm, chosen->protocol, channels_, best};
}

RingGraph search_ring(Generation generation, std::uint32_t links, double link_rate) {
  constexpr double kFilled = 0.95;  // the search stops at the first speed that nearly fills them
  const double all = links * link_rate / kGiga;
  const auto search = [&](std::span<const double> speeds) {
    RingGraph best{0, 1};
    for (const double speed : speeds) {
      const double channels = std::floor(all / speed + 1e-9);
      if (channels * speed > best.rate) best = {channels * speed, channels};
      if (best.rate >= kFilled * all) break;
    }
    // Fast channels are split in two.
    if (best.channels > 0 && best.rate / best.channels >= 25 && generation >= Generation::kAmpere)
      best.channels *= generation == Generation::kBlackwell ? 1.75 : 2;
    return best;
  };
  RingGraph found = generation == Generation::kBlackwell ? search(nccl::kSpeedsBlackwell)
                    : generation == Generation::kHopper  ? search(nccl::kSpeedsHopper)
                                                         : search(nccl::kSpeeds);
  if (!(found.rate > 0)) found = {all, 1};  // slower than the slowest speed
  return {found.rate * kGiga, found.channels};
}

double nvlink_rate(Generation generation) { return nccl::kNvlinkRate[at(generation)] * kGiga; }

}  // namespace rehearse::comm
