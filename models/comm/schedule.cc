#include "models/comm/schedule.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::comm {
namespace {

using graph::Lane;
using graph::Lanes;
using graph::Wait;

/// Every rank r sends `count` messages to to(r), each after it has received the one before.
/// to(r) = r: it sends nothing.
struct Phase {
  std::function<std::uint32_t(std::uint32_t)> to;
  std::uint32_t count;
  double share;
  bool across = false;
};

Schedule from_phases(std::uint32_t ranks, const std::vector<Phase>& phases) {
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  using OfRank = std::vector<std::optional<std::uint32_t>>;
  OfRank sent_before(ranks), received_before(ranks);
  Schedule result{.lanes = nullptr, .local = {}, .across = {}};
  for (const Phase& phase : phases) {
    if (phase.count == 0) continue;
    OfRank sends(ranks), receives(ranks);
    const auto first = static_cast<std::uint32_t>(lanes.size());
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t to = phase.to(r);
      if (to == r) continue;
      sends[r] = receives[to] = static_cast<std::uint32_t>(lanes.size());
      lanes.push_back({r, to, phase.count, phase.share});
    }
    for (std::uint32_t lane = first; lane < lanes.size(); ++lane) {
      const auto [from, to] = std::pair(lanes[lane].from, lanes[lane].to);
      // Both must have done with the phase before: who receives has to ask for it.
      std::vector<std::uint32_t> due;
      for (const auto& before :
           {sent_before[from], received_before[from], sent_before[to], received_before[to]})
        if (before && std::find(due.begin(), due.end(), *before) == due.end())
          due.push_back(*before);
      for (const std::uint32_t before : due) waits.push_back({lane, before, lanes[before].count});
      if (phase.count > 1 && receives[from]) waits.push_back({lane, *receives[from], 0, true});
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (sends[r]) sent_before[r] = sends[r];
      if (receives[r]) received_before[r] = receives[r];
    }
    Steps& steps = phase.across ? result.across : result.local;
    steps.count += phase.count;
    steps.share += phase.share * phase.count;
  }
  result.lanes = std::make_shared<Lanes>(ranks, std::move(lanes), std::move(waits));
  return result;
}

/// A ring through the ranks that differ in one coordinate only: of `extent` ranks, `stride` apart.
Phase ring(std::uint32_t stride, std::uint32_t extent, std::uint32_t count, double share,
           bool across = false) {
  const auto next = [=](std::uint32_t r) {
    const std::uint32_t place = r / stride % extent;
    return r - place * stride + (place + 1) % extent * stride;
  };
  return {next, extent > 1 ? count : 0, share, across};
}

/// n-1 phases; in the k-th every rank sends to the one k further on, around the same circle.
std::vector<Phase> pairwise(std::uint32_t stride, std::uint32_t extent, double share, bool across) {
  std::vector<Phase> phases;
  for (std::uint32_t k = 1; k < extent; ++k)
    phases.push_back({[=](std::uint32_t r) {
                        const std::uint32_t place = r / stride % extent;
                        return r - place * stride + (place + k) % extent * stride;
                      },
                      1, share, across});
  return phases;
}

std::vector<Phase> pat_all_gather(std::uint32_t n) {
  std::vector<Phase> phases;
  for (std::uint32_t distance = 1; distance < n; distance *= 2)
    phases.push_back({[=](std::uint32_t r) { return (r + distance) % n; }, 1,
                      static_cast<double>(std::min(distance, n - distance)) / n});
  return phases;
}

/// Recursive halving (first half of the vector) among the largest power of two of ranks.
std::vector<Phase> halving(std::uint32_t n) {
  const std::uint32_t power = std::bit_floor(n);
  std::vector<Phase> phases;
  double share = 0.5;
  for (std::uint32_t distance = power / 2; distance > 0; distance /= 2, share /= 2)
    phases.push_back({[=](std::uint32_t r) { return r < power ? r ^ distance : r; }, 1, share});
  return phases;
}

/// Ranks beyond the power of two hand their buffer to a partner, or get the result from it.
Phase fold(std::uint32_t n, bool to_partner) {
  const std::uint32_t power = std::bit_floor(n);
  return {[=](std::uint32_t r) {
            if (to_partner) return r >= power ? r - power : r;
            return r < n - power ? r + power : r;
          },
          n > power ? 1U : 0U, 1};
}

std::vector<Phase> reversed(std::vector<Phase> phases) {
  std::reverse(phases.begin(), phases.end());
  return phases;
}

void append(std::vector<Phase>& phases, std::vector<Phase> more) {
  for (Phase& phase : more) phases.push_back(std::move(phase));
}

/// The in-order binary tree over 0..n-1, rank 0 its root: odd ranks are leaves.
std::uint32_t parent_in_tree(std::uint32_t r, std::uint32_t n) {
  const std::uint32_t low = r & (~r + 1);
  const std::uint32_t up = (r ^ low) | (low << 1);
  return up < n ? up : r ^ low;
}

/// Double binary tree: half of the buffer on each of two trees, in which few ranks are inner nodes
/// of both (the second is the mirror image, or for odd n the first moved on by one). Up, down, or
/// both.
Schedule double_tree(std::uint32_t n, std::uint32_t chunks, bool up, bool down) {
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  const double share = 0.5 / chunks;
  std::uint32_t height = 0;
  for (const bool second : {false, true}) {
    const auto rank_of = [&](std::uint32_t place) {
      if (!second) return place;
      return n % 2 == 0 ? n - 1 - place : (place + 1) % n;
    };
    std::vector<std::vector<std::uint32_t>> children(n);
    std::vector<std::uint32_t> up_lane(n), down_lane(n);
    const auto lane_at = [&](std::uint32_t from, std::uint32_t to) {
      lanes.push_back({rank_of(from), rank_of(to), chunks, share});
      return static_cast<std::uint32_t>(lanes.size() - 1);
    };
    for (std::uint32_t r = 1; r < n; ++r) {
      const std::uint32_t parent = parent_in_tree(r, n);
      children[parent].push_back(r);
      std::uint32_t depth = 1;
      for (std::uint32_t at = parent; at != 0; at = parent_in_tree(at, n)) ++depth;
      height = std::max(height, depth);
      if (up) up_lane[r] = lane_at(r, parent);
      if (down) down_lane[r] = lane_at(parent, r);
    }
    for (std::uint32_t r = 1; r < n; ++r) {
      const std::uint32_t parent = parent_in_tree(r, n);
      if (up)
        for (const std::uint32_t child : children[r])
          waits.push_back({up_lane[r], up_lane[child], 1, true});
      if (!down) continue;
      if (parent != 0) {
        waits.push_back({down_lane[r], down_lane[parent], 1, true});
      } else if (up) {
        for (const std::uint32_t child : children[0])
          waits.push_back({down_lane[r], up_lane[child], 1, true});
      }
    }
  }
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.on < b.on;
  });
  const double steps = (up ? height : 0) + (down ? height : 0) + chunks - 1;
  // An inner node's port carries four lanes, each with half of the buffer.
  return {.lanes = std::make_shared<Lanes>(n, std::move(lanes), std::move(waits)),
          .local = {steps, steps * share * 4},
          .across = {}};
}

/// Along the ring from rank 0 (broadcast) or to it (reduce), in chunks.
Schedule chain(std::uint32_t n, std::uint32_t chunks, bool from_root) {
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    const std::uint32_t from = from_root ? i : i + 1;
    const std::uint32_t to = from_root ? i + 1 : (i + 2) % n;
    lanes.push_back({from, to, chunks, 1.0 / chunks});
    if (i > 0) waits.push_back({i, i - 1, 1, true});
  }
  const double steps = n - 1 + chunks - 1;
  return {.lanes = std::make_shared<Lanes>(n, std::move(lanes), std::move(waits)),
          .local = {steps, steps / chunks},
          .across = {}};
}

Schedule parameter_server(std::uint32_t ranks, std::uint32_t servers, bool push, bool pull) {
  const std::uint32_t workers = ranks - servers;
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  const double share = 1.0 / servers;
  if (push)
    for (std::uint32_t w = 0; w < workers; ++w)
      for (std::uint32_t s = 0; s < servers; ++s) lanes.push_back({w, workers + s, 1, share});
  if (pull)
    for (std::uint32_t s = 0; s < servers; ++s)
      for (std::uint32_t w = 0; w < workers; ++w) {
        const auto lane = static_cast<std::uint32_t>(lanes.size());
        lanes.push_back({workers + s, w, 1, share});
        if (!push) continue;
        for (std::uint32_t other = 0; other < workers; ++other)
          waits.push_back({lane, other * servers + s, 1});
      }
  const double turns = (push ? 1 : 0) + (pull ? 1 : 0);
  const double busiest = std::max(1.0, static_cast<double>(workers) / servers);
  return {.lanes = std::make_shared<Lanes>(ranks, std::move(lanes), std::move(waits)),
          .local = {turns, turns * busiest},
          .across = {}};
}

Schedule one_message(std::uint32_t ranks) {
  return {.lanes = std::make_shared<Lanes>(ranks, std::vector<Lane>{{0, 1, 1, 1.0}},
                                           std::vector<Wait>{}),
          .local = {1, 1},
          .across = {}};
}

tl::unexpected<Error> cannot(CollectiveKind kind, Algorithm algorithm, std::string_view what) {
  return fail(fmt::format("algorithm '{}' does no {}", to_string(algorithm), to_string(kind)),
              std::string(what));
}

Result<Schedule> by_ring(CollectiveKind kind, const Arrangement& group) {
  const std::uint32_t n = group.ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return from_phases(n, {ring(1, n, 2 * (n - 1), 1.0 / n)});
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return from_phases(n, {ring(1, n, n - 1, 1.0 / n)});
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return chain(n, group.chunks, kind == CollectiveKind::kBroadcast);
    case CollectiveKind::kBarrier:
      return from_phases(n, {ring(1, n, 2 * (n - 1), 0)});
    case CollectiveKind::kSendRecv:
      return one_message(n);
    case CollectiveKind::kAllToAll:
      break;
  }
  return cannot(kind, Algorithm::kRing, "pairwise, linear or two_dimensional");
}

}  // namespace

Schedule uneven_all_to_all(const std::vector<std::vector<double>>& shares) {
  const auto n = static_cast<std::uint32_t>(shares.size());
  std::vector<Lane> lanes;
  std::vector<double> in(n, 0);
  double busiest = 0;
  for (std::uint32_t from = 0; from < n; ++from) {
    REHEARSE_CHECK(shares[from].size() == n, "row {} has {} of {} columns", from,
                   shares[from].size(), n);
    double out = 0;
    for (std::uint32_t to = 0; to < n; ++to) {
      if (from == to || shares[from][to] == 0) continue;
      lanes.push_back({from, to, 1, shares[from][to]});
      out += shares[from][to];
      in[to] += shares[from][to];
    }
    busiest = std::max(busiest, out);
  }
  for (const double each : in) busiest = std::max(busiest, each);
  const double steps = lanes.empty() ? 0 : 1;
  return {.lanes = std::make_shared<Lanes>(n, std::move(lanes), std::vector<Wait>{}),
          .local = {steps, busiest},
          .across = {}};
}

Result<Schedule> schedule(CollectiveKind kind, Algorithm algorithm, const Arrangement& group) {
  const std::uint32_t n = group.ranks;
  if (n < 2 || group.per_node < 1 || n % group.per_node != 0 || group.chunks < 1)
    return fail(fmt::format("a group of {} ranks, {} per node, in {} chunks", n, group.per_node,
                            group.chunks),
                "at least 2 ranks, as many on every node, and at least one chunk");
  const std::uint32_t local = group.per_node, nodes = n / local;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  switch (algorithm) {
    case Algorithm::kRing:
      return by_ring(kind, group);
    case Algorithm::kTree:
      if (all_reduce) return double_tree(n, group.chunks, true, true);
      if (kind == CollectiveKind::kReduce) return double_tree(n, group.chunks, true, false);
      if (kind == CollectiveKind::kBroadcast) return double_tree(n, group.chunks, false, true);
      return cannot(kind, algorithm, "all_reduce, reduce or broadcast");
    case Algorithm::kNvls:
      if (nodes > 1) return fail("algorithm 'nvls' stays within a node", "ranks of one node");
      if (all_reduce) return from_phases(n, {ring(1, n, 2, (n + 1.0) / n / 2)});
      if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter)
        return from_phases(n, {ring(1, n, 1, (n + 1.0) / n / 2)});
      return cannot(kind, algorithm, "all_reduce, all_gather or reduce_scatter");
    case Algorithm::kPat:
      if (kind == CollectiveKind::kAllGather) return from_phases(n, pat_all_gather(n));
      if (kind == CollectiveKind::kReduceScatter)
        return from_phases(n, reversed(pat_all_gather(n)));
      return cannot(kind, algorithm, "all_gather or reduce_scatter");
    case Algorithm::kCollnetDirect:
      if (nodes < 2) return fail("algorithm 'collnet_direct' needs several nodes", "ring or nvls");
      if (!all_reduce) return cannot(kind, algorithm, "all_reduce");
      return from_phases(
          n, {ring(1, local, local - 1, 1.0 / local), ring(local, nodes, 1, 1.0 / local, true),
              ring(1, local, local - 1, 1.0 / local)});
    case Algorithm::kHalvingDoubling: {
      std::vector<Phase> phases;
      const bool power = std::has_single_bit(n);
      if (!all_reduce && !power)
        return fail(fmt::format("halving_doubling of {} among {} ranks", to_string(kind), n),
                    "a power of two of ranks");
      if (all_reduce) phases.push_back(fold(n, true));
      if (all_reduce || kind == CollectiveKind::kReduceScatter) append(phases, halving(n));
      if (all_reduce || kind == CollectiveKind::kAllGather) append(phases, reversed(halving(n)));
      if (all_reduce) phases.push_back(fold(n, false));
      if (phases.empty()) return cannot(kind, algorithm, "all_reduce, reduce_scatter, all_gather");
      return from_phases(n, phases);
    }
    case Algorithm::kPairwise:
    case Algorithm::kLinear:
    case Algorithm::kTwoDimensional: {
      if (kind != CollectiveKind::kAllToAll) return cannot(kind, algorithm, "all_to_all");
      if (algorithm == Algorithm::kPairwise) return from_phases(n, pairwise(1, n, 1.0 / n, false));
      if (algorithm == Algorithm::kLinear)
        return uneven_all_to_all(
            std::vector<std::vector<double>>(n, std::vector<double>(n, 1.0 / n)));
      std::vector<Phase> phases = pairwise(1, local, 1.0 / local, false);
      append(phases, pairwise(local, nodes, 1.0 / nodes, true));
      return from_phases(n, phases);
    }
    case Algorithm::kCollnetChain:
    case Algorithm::kNvlsTree:
      return fail(fmt::format("algorithm '{}' is known by its cost alone, not by its messages",
                              to_string(algorithm)),
                  "collnet_direct, hierarchical, tree or ring");
    case Algorithm::kHierarchical:
      if (!all_reduce) return cannot(kind, algorithm, "all_reduce");
      return from_phases(n, {ring(1, local, local - 1, 1.0 / local),
                             ring(local, nodes, 2 * (nodes - 1), 1.0 / local / nodes, true),
                             ring(1, local, local - 1, 1.0 / local)});
    case Algorithm::kParameterServer: {
      if (group.servers < 1 || group.servers >= n)
        return fail(fmt::format("{} parameter servers among {} ranks", group.servers, n),
                    "at least one server and one worker");
      const bool push = all_reduce || kind == CollectiveKind::kReduce;
      const bool pull = all_reduce || kind == CollectiveKind::kBroadcast;
      if (!push && !pull) return cannot(kind, algorithm, "all_reduce, reduce or broadcast");
      return parameter_server(n, group.servers, push, pull);
    }
  }
  REHEARSE_CHECK(false, "algorithm {}", static_cast<int>(algorithm));
}

Seconds closed_time(const Schedule& schedule, Bytes size, const cluster::PointToPoint& local,
                    const cluster::PointToPoint& across) {
  const auto time = [&](const Steps& steps, const cluster::PointToPoint& path) {
    return steps.count * path.latency + size * steps.share / path.rate;
  };
  return time(schedule.local, local) + time(schedule.across, across);
}

}  // namespace rehearse::comm
