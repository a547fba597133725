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

using graph::MessageFlow, graph::MessageFlows, graph::Wait;

/// Every rank r sends `count` messages to to(r), each after it has received the previous one. If
/// to(r) = r, it sends nothing.
struct Phase {
  std::function<std::uint32_t(std::uint32_t)> to;
  std::uint32_t count;
  double share;
  bool across = false;
};

Schedule from_phases(std::uint32_t ranks, const std::vector<Phase>& phases) {
  std::vector<MessageFlow> flows;
  std::vector<Wait> waits;
  using OfRank = std::vector<std::optional<std::uint32_t>>;
  OfRank sent_before(ranks), received_before(ranks);
  Schedule result{.flows = nullptr};
  std::vector<char> across;
  for (const Phase& phase : phases) {
    if (phase.count == 0) continue;
    OfRank sends(ranks), receives(ranks);
    const auto first = static_cast<std::uint32_t>(flows.size());
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t to = phase.to(r);
      if (to == r) continue;
      sends[r] = receives[to] = static_cast<std::uint32_t>(flows.size());
      across.push_back(phase.across ? 1 : 0);
      flows.push_back({r, to, phase.count, phase.share});
    }
    for (std::uint32_t flow = first; flow < flows.size(); ++flow) {
      const auto [from, to] = std::pair(flows[flow].from, flows[flow].to);
      // Both must have finished the previous phase: a receiver has to request the message.
      std::vector<std::uint32_t> due;
      for (const auto& before :
           {sent_before[from], received_before[from], sent_before[to], received_before[to]})
        if (before && std::ranges::find(due, *before) == due.end()) due.push_back(*before);
      for (const std::uint32_t before : due) waits.push_back({flow, before, flows[before].count});
      if (phase.count > 1 && receives[from]) waits.push_back({flow, *receives[from], 0, true});
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (sends[r]) sent_before[r] = sends[r];
      if (receives[r]) received_before[r] = receives[r];
    }
    Steps& steps = phase.across ? result.across : result.local;
    steps.count += phase.count;
    steps.share += phase.share * phase.count;
  }
  result.busy = result.local.share + result.across.share;
  if (result.local.count > 0 && result.across.count > 0)
    result.across_flows = std::make_shared<std::vector<char>>(std::move(across));
  result.flows = std::make_shared<MessageFlows>(ranks, std::move(flows), std::move(waits));
  return result;
}

/// The flows of messages that leave a node, from rank `from` to rank `to` of another: one for each
/// rail, between ranks of equal position. Within a node there is one.
class Rails {
 public:
  Rails(const Arrangement& group, double part)
      : per_node_(group.per_node),
        rails_(std::clamp(group.rails, 1U, group.per_node)),
        part_(part) {}

  /// Adds the flows; returns their numbers.
  std::vector<std::uint32_t> add(std::uint32_t from, std::uint32_t to, std::uint32_t count,
                                 double share) {
    const std::uint32_t node = from / per_node_ * per_node_, other = to / per_node_ * per_node_;
    const std::uint32_t rails = node == other ? 1 : rails_;
    std::vector<std::uint32_t> added;
    for (std::uint32_t i = 0; i < rails; ++i) {
      const std::uint32_t place = i * per_node_ / rails;
      added.push_back(static_cast<std::uint32_t>(flows_.size()));
      flows_.push_back({rails == 1 ? from : node + place, rails == 1 ? to : other + place, count,
                        share / rails});
      parts_.push_back(part_ / rails);
    }
    return added;
  }

  void wait(const std::vector<std::uint32_t>& flows, const std::vector<std::uint32_t>& on,
            std::uint32_t after) {
    for (const std::uint32_t flow : flows)
      for (const std::uint32_t other : on) waits_.push_back({flow, other, after, true});
  }

  Schedule schedule(std::uint32_t ranks, Steps steps, std::uint32_t depth, double busy) && {
    std::ranges::sort(waits_, [](const Wait& a, const Wait& b) {
      return a.flow != b.flow ? a.flow < b.flow : a.on < b.on;
    });
    const bool whole = std::ranges::all_of(parts_, [](double p) { return p == 1; });
    return {.flows = std::make_shared<MessageFlows>(ranks, std::move(flows_), std::move(waits_)),
            .local = steps,
            .depth = depth,
            .busy = busy,
            .parts = whole ? nullptr : std::make_shared<std::vector<double>>(std::move(parts_))};
  }

 private:
  std::uint32_t per_node_, rails_;
  double part_;
  std::vector<MessageFlow> flows_;
  std::vector<double> parts_;
  std::vector<Wait> waits_;
};

/// All around the rings; each message follows what its rank has received before.
Schedule whole_ring(const Arrangement& group, std::uint32_t count, double share) {
  const std::uint32_t n = group.ranks;
  std::vector<std::vector<std::uint32_t>> orders = group.rings;
  if (orders.empty()) {
    orders.emplace_back(n);
    std::iota(orders.front().begin(), orders.front().end(), 0U);
  }
  const double part = 1.0 / static_cast<double>(orders.size());
  Rails rails(group, group.links_apart ? 1 : part);
  for (const std::vector<std::uint32_t>& order : orders) {
    std::vector<std::vector<std::uint32_t>> hops;
    for (std::uint32_t i = 0; i < n; ++i)
      hops.push_back(rails.add(order[i], order[(i + 1) % n], count, share * part));
    if (count > 1)
      for (std::uint32_t i = 0; i < n; ++i) rails.wait(hops[i], hops[(i + n - 1) % n], 0);
  }
  const double moved = share * count * (group.links_apart ? part : 1);
  return std::move(rails).schedule(n, {1.0 * count, moved}, 0, moved);
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

/// In phase k every rank sends to the rank k positions further on, around a circle of `extent`.
std::vector<Phase> pairwise(std::uint32_t extent, double share) {
  std::vector<Phase> phases;
  for (std::uint32_t k = 1; k < extent; ++k)
    phases.push_back(
        {[=](std::uint32_t r) { return r / extent * extent + (r + k) % extent; }, 1, share});
  return phases;
}

/// The messages of both, which do not wait for each other, with the steps of the first.
Schedule together(const Schedule& first, const Schedule& second) {
  std::vector<MessageFlow> flows(first.flows->flows().begin(), first.flows->flows().end());
  std::vector<Wait> waits(first.flows->waits().begin(), first.flows->waits().end());
  const auto after = static_cast<std::uint32_t>(flows.size());
  flows.insert(flows.end(), second.flows->flows().begin(), second.flows->flows().end());
  for (const Wait& wait : second.flows->waits())
    waits.push_back({after + wait.flow, after + wait.on, wait.after, wait.each});
  Schedule result = first;
  result.flows =
      std::make_shared<MessageFlows>(first.flows->members(), std::move(flows), std::move(waits));
  return result;
}

/// Pairwise over nodes: messages within the node run alongside those that leave it, which take
/// longer. In each phase every rank sends to the rank a fixed number of nodes and positions further
/// on.
Schedule pairwise_over_nodes(std::uint32_t local, std::uint32_t nodes) {
  const std::uint32_t n = local * nodes;
  std::vector<Phase> leaving;
  for (std::uint32_t k = 1; k < nodes; ++k)
    for (std::uint32_t place = 0; place < local; ++place)
      leaving.push_back(
          {[=](std::uint32_t r) { return (r / local + k) % nodes * local + (r + place) % local; },
           1, 1.0 / n, true});
  const Schedule within = from_phases(n, pairwise(local, 1.0 / n));
  return together(from_phases(n, leaving), within);
}

/// Every message at once, each with an equal part of its port.
Schedule linear(const Arrangement& group) {
  const std::uint32_t n = group.ranks;
  Schedule result =
      uneven_all_to_all(std::vector<std::vector<double>>(n, std::vector<double>(n, 1.0 / n)));
  if (group.links_apart) {
    result.local = {1, 1.0 / n};
    result.busy = 1.0 / n;
  } else if (n > 2) {
    result.parts =
        std::make_shared<std::vector<double>>(result.flows->flows().size(), 1.0 / (n - 1));
  }
  return result;
}

/// First all messages within the nodes at once, then all between ranks of equal place; each with an
/// equal part of its port.
Schedule two_dimensional(std::uint32_t local, std::uint32_t nodes) {
  const std::uint32_t n = local * nodes;
  std::vector<MessageFlow> flows;
  std::vector<std::vector<std::uint32_t>> into(n);
  for (std::uint32_t k = 1; k < local; ++k)
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t to = r / local * local + (r + k) % local;
      into[to].push_back(static_cast<std::uint32_t>(flows.size()));
      flows.push_back({r, to, 1, 1.0 / local});
    }
  std::vector<char> across(flows.size(), 0);
  std::vector<double> parts(flows.size(), 1.0 / std::max(1U, local - 1));
  std::vector<Wait> waits;
  for (std::uint32_t k = 1; k < nodes; ++k)
    for (std::uint32_t r = 0; r < n; ++r) {
      for (const std::uint32_t flow : into[r])
        waits.push_back({static_cast<std::uint32_t>(flows.size()), flow, 1});
      flows.push_back({r, (r + k * local) % n, 1, 1.0 / nodes});
    }
  across.resize(flows.size(), 1);
  parts.resize(flows.size(), 1.0 / std::max(1U, nodes - 1));
  const auto steps = [](double extent) {
    return extent > 1 ? Steps{1, 1 - 1 / extent, extent - 2} : Steps{};
  };
  Schedule result{.flows = nullptr, .local = steps(local), .across = steps(nodes)};
  result.busy = result.local.share + result.across.share;
  if (local > 1 && nodes > 1)
    result.across_flows = std::make_shared<std::vector<char>>(std::move(across));
  if (local > 2 || nodes > 2)
    result.parts = std::make_shared<std::vector<double>>(std::move(parts));
  result.flows = std::make_shared<MessageFlows>(n, std::move(flows), std::move(waits));
  return result;
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
  std::ranges::reverse(phases);
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

/// Double binary tree over nodes, with a chain through the ranks of each: half of the buffer on
/// each of two trees, in which few nodes are inner nodes of both (the second is the mirror image,
/// or for an odd number the first moved on by one). Up, down, or both.
Schedule double_tree(const Arrangement& group, bool up, bool down) {
  const std::uint32_t local = group.per_node, nodes = group.ranks / local, chunks = group.chunks;
  const double share = 0.5 / chunks;
  Rails rails(group,
              0.25);  // an inner rank's port carries four flows, each with half of the buffer
  using Numbers = std::vector<std::uint32_t>;
  std::uint32_t height = 0;
  for (const bool second : {false, true}) {
    const auto head_of = [&](std::uint32_t place) {
      const std::uint32_t node = !second          ? place
                                 : nodes % 2 == 0 ? nodes - 1 - place
                                                  : (place + 1) % nodes;
      return node * local;
    };
    // By position in the tree: flows into the head of the node from below, out of it, and into it
    // from above.
    std::vector<Numbers> from_below(nodes), up_flows(nodes), down_flows(nodes);
    for (std::uint32_t x = 0; up && x < nodes; ++x) {
      Numbers before;
      for (std::uint32_t j = local - 1; j > 0; --j) {
        const Numbers flows = rails.add(head_of(x) + j, head_of(x) + j - 1, chunks, share);
        rails.wait(flows, before, 1);
        before = flows;
      }
      from_below[x] = before;
    }
    for (std::uint32_t x = 1; x < nodes; ++x) {
      const std::uint32_t parent = parent_in_tree(x, nodes);
      std::uint32_t depth = 1;
      for (std::uint32_t at = parent; at != 0; at = parent_in_tree(at, nodes)) ++depth;
      height = std::max(height, depth);
      if (up) up_flows[x] = rails.add(head_of(x), head_of(parent), chunks, share);
      if (down) down_flows[x] = rails.add(head_of(parent), head_of(x), chunks, share);
      from_below[parent].insert(from_below[parent].end(), up_flows[x].begin(), up_flows[x].end());
    }
    for (std::uint32_t x = 0; x < nodes; ++x) {
      const std::uint32_t parent = x == 0 ? 0 : parent_in_tree(x, nodes);
      rails.wait(up_flows[x], from_below[x], 1);
      rails.wait(down_flows[x], parent == 0 ? from_below[0] : down_flows[parent], 1);
      Numbers before = x == 0 ? from_below[0] : down_flows[x];
      for (std::uint32_t j = 0; down && j + 1 < local; ++j) {
        const Numbers flows = rails.add(head_of(x) + j, head_of(x) + j + 1, chunks, share);
        rails.wait(flows, before, 1);
        before = flows;
      }
    }
  }
  const std::uint32_t one_route = height + local - 1;
  const std::uint32_t depth = (up ? one_route : 0) + (down ? one_route : 0);
  const double steps = depth + chunks - 1;
  // Of the four flows of a port, each message waits for three others.
  return std::move(rails).schedule(group.ranks, {steps, steps * share * 4, steps * 3}, depth, 2);
}

/// Reduction in the switches of each node, and between ranks of equal place on all nodes at the same
/// time, because the buffer is pipelined. NVLinks carry it once and the NICs of a node twice (N-1)/N
/// times; the messages of both take equally long.
Schedule nvls_tree(std::uint32_t local, std::uint32_t nodes) {
  const std::uint32_t n = local * nodes;
  constexpr std::uint32_t kUpAndDown = 2;
  const double inside = (local + 1.0) / local, between = 2.0 * (nodes - 1) / nodes / local;
  const Schedule within = from_phases(n, {ring(1, local, kUpAndDown, inside / kUpAndDown)});
  const Schedule leaving = from_phases(n, {ring(local, nodes, kUpAndDown, between / kUpAndDown)});
  Schedule result = together(within, leaving);
  std::vector<double> parts(within.flows->flows().size(), 1);
  parts.resize(result.flows->flows().size(), between / inside);
  result.parts = std::make_shared<std::vector<double>>(std::move(parts));
  return result;
}

/// Along the ring from rank 0 (broadcast) or to it (reduce), in chunks.
Schedule chain(const Arrangement& group, bool from_root) {
  const std::uint32_t n = group.ranks, chunks = group.chunks;
  Rails rails(group, 1);
  std::vector<std::uint32_t> before;
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    const std::uint32_t from = from_root ? i : i + 1;
    const std::vector<std::uint32_t> flows = rails.add(from, (from + 1) % n, chunks, 1.0 / chunks);
    rails.wait(flows, before, 1);
    before = flows;
  }
  return std::move(rails).schedule(n, ring_steps(CollectiveKind::kBroadcast, n, chunks), n - 1, 1);
}

Schedule parameter_server(std::uint32_t ranks, std::uint32_t servers, bool push, bool pull) {
  const std::uint32_t workers = ranks - servers;
  std::vector<MessageFlow> flows;
  std::vector<Wait> waits;
  const double share = 1.0 / servers;
  if (push)
    for (std::uint32_t w = 0; w < workers; ++w)
      for (std::uint32_t s = 0; s < servers; ++s) flows.push_back({w, workers + s, 1, share});
  if (pull)
    for (std::uint32_t s = 0; s < servers; ++s)
      for (std::uint32_t w = 0; w < workers; ++w) {
        const auto flow = static_cast<std::uint32_t>(flows.size());
        flows.push_back({workers + s, w, 1, share});
        if (!push) continue;
        for (std::uint32_t other = 0; other < workers; ++other)
          waits.push_back({flow, other * servers + s, 1});
      }
  const double turns = (push ? 1 : 0) + (pull ? 1 : 0);
  const double busiest = std::max(1.0, static_cast<double>(workers) / servers);
  return {.flows = std::make_shared<MessageFlows>(ranks, std::move(flows), std::move(waits)),
          .local = {turns, turns * busiest, turns * (std::max(workers, servers) - 1.0)},
          .busy = turns * busiest};
}

Schedule one_message(std::uint32_t ranks) {
  return {.flows = std::make_shared<MessageFlows>(ranks, std::vector<MessageFlow>{{0, 1, 1, 1.0}},
                                                  std::vector<Wait>{}),
          .local = {1, 1},
          .busy = 1};
}

tl::unexpected<Error> cannot(CollectiveKind kind, Algorithm algorithm, std::string_view what) {
  return fail(
      fmt::format("algorithm '{}' does not support {}", to_string(algorithm), to_string(kind)),
      std::string(what));
}

Result<Schedule> by_ring(CollectiveKind kind, const Arrangement& group) {
  const std::uint32_t n = group.ranks;
  const auto steps = static_cast<std::uint32_t>(ring_steps(kind, n).count);
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBarrier:
      return whole_ring(group, steps, kind == CollectiveKind::kBarrier ? 0 : 1.0 / n);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce: return chain(group, kind == CollectiveKind::kBroadcast);
    case CollectiveKind::kSendRecv: return one_message(n);
    case CollectiveKind::kAllToAll: break;
  }
  return cannot(kind, Algorithm::kRing, "pairwise, linear or two_dimensional");
}

}  // namespace

Steps ring_steps(CollectiveKind kind, std::uint32_t ranks, std::uint32_t chunks) {
  const double n = ranks, pipelined = n - 1 + chunks - 1;
  switch (kind) {
    case CollectiveKind::kAllReduce: return {2 * (n - 1), 2 * (n - 1) / n};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll: return {n - 1, (n - 1) / n};
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce: return {pipelined, pipelined / chunks};
    case CollectiveKind::kBarrier: return {2 * (n - 1), 0};
    case CollectiveKind::kSendRecv: break;
  }
  return {1, 1};
}

Result<Schedule> schedule(CollectiveKind kind, Algorithm algorithm, const Arrangement& group) {
  const std::uint32_t n = group.ranks;
  if (n < 2 || group.per_node < 1 || n % group.per_node != 0 || group.chunks < 1)
    return fail(fmt::format("a group of {} ranks, {} per node, in {} chunks, is not valid", n,
                            group.per_node, group.chunks),
                "at least 2 ranks, as many on every node, and at least one chunk");
  const std::uint32_t local = group.per_node, nodes = n / local;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  switch (algorithm) {
    case Algorithm::kRing: return by_ring(kind, group);
    case Algorithm::kTree:
      if (all_reduce) return double_tree(group, true, true);
      if (kind == CollectiveKind::kReduce) return double_tree(group, true, false);
      if (kind == CollectiveKind::kBroadcast) return double_tree(group, false, true);
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
                    "a power of two");
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
      if (algorithm == Algorithm::kPairwise)
        return nodes > 1 && local > 1 ? pairwise_over_nodes(local, nodes)
                                      : from_phases(n, pairwise(n, 1.0 / n));
      return algorithm == Algorithm::kLinear ? linear(group) : two_dimensional(local, nodes);
    }
    case Algorithm::kNvlsTree:
      if (!all_reduce) return cannot(kind, algorithm, "all_reduce");
      return nvls_tree(local, nodes);
    case Algorithm::kCollnetChain:
      return fail(fmt::format("algorithm '{}' has a cost model but no message schedule",
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

}  // namespace rehearse::comm
