#include "sim/cluster/routing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "sim/base/check.h"
#include "sim/base/time.h"

namespace rehearse::cluster {
namespace {

constexpr std::int64_t kFar = INT64_MAX / 4;
// Slower links tie with this one (1 MiB in 281 s); a sum of 2^14 of them still fits.
constexpr std::int64_t kSlowest = std::int64_t{1} << 48;

/// Above zero, so that every detour is longer.
std::int64_t cost_of(const LinkType& type) {
  const double time = (type.latency + Bytes::mib(1) / type.rate).s() * 1e12;
  return time < static_cast<double>(kSlowest) ? std::max<std::int64_t>(1, std::llround(time))
                                              : kSlowest;
}

using Queue =
    std::priority_queue<std::pair<std::int64_t, std::uint32_t>,
                        std::vector<std::pair<std::int64_t, std::uint32_t>>, std::greater<>>;

}  // namespace

Router::Router(std::span<const Vertex> vertices, std::span<const Link> links,
               std::span<const LinkType> types, std::size_t nodes, std::vector<std::uint32_t> turns)
    : turns_(std::move(turns)), local_(vertices.size(), 0), zones_(nodes) {
  std::vector<Cost> by_type;
  for (const LinkType& type : types) by_type.push_back(cost_of(type));
  for (const Link& link : links) {
    cost_.push_back(by_type[link.type]);
    end_a_.push_back(link.a.index());
  }
  for (std::uint32_t v = 0; v < vertices.size(); ++v) {
    forwards_.push_back(vertices[v].forwards ? 1 : 0);
    spread_.push_back(vertices[v].spread ? 1 : 0);
    node_.push_back(vertices[v].node ? std::optional(vertices[v].node->index()) : std::nullopt);
    if (!node_[v]) continue;
    Zone& zone = zones_[*node_[v]];
    local_[v] = static_cast<std::uint32_t>(zone.vertices.size());
    zone.vertices.push_back(v);
  }
  inner_ = adjacency(links, [&](const Link& link) {
    return node_[link.a.index()] && node_[link.a.index()] == node_[link.b.index()];
  });
  find_core(links);
  find_portals(vertices);
  number_destinations();
  measure_heights();
  measure_nodes();
  to_core_ = std::make_unique<std::atomic<const Cost*>[]>(core_.size());
  exits_ = std::make_unique<std::atomic<const Exits*>[]>(vertices.size());
}

Router::~Router() {
  for (std::size_t i = 0; i < core_.size(); ++i) delete[] to_core_[i].load();
  for (std::size_t v = 0; v < forwards_.size(); ++v) delete exits_[v].load();
}

template <class Keep>
Router::Adjacency Router::adjacency(std::span<const Link> links, Keep keep) const {
  Adjacency result{.first = std::vector<std::uint32_t>(forwards_.size() + 1, 0)};
  const auto each = [&](auto visit) {
    for (std::uint32_t i = 0; i < links.size(); ++i)
      if (keep(links[i])) {
        visit(links[i].a.index(), Edge{i, links[i].b.index()});
        visit(links[i].b.index(), Edge{i, links[i].a.index()});
      }
  };
  each([&](std::uint32_t from, Edge) { ++result.first[from + 1]; });
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.edges.resize(result.first.back(), Edge{0, 0});
  std::vector<std::uint32_t> next(result.first.begin(), result.first.end() - 1);
  each([&](std::uint32_t from, Edge edge) { result.edges[next[from]++] = edge; });
  return result;
}

/// Finds the vertices of the fabric, the core vertices among them, and the links between those.
void Router::find_core(std::span<const Link> links) {
  const auto size = static_cast<std::uint32_t>(forwards_.size());
  std::vector<char> in_fabric(size, false);
  for (std::uint32_t v = 0; v < size; ++v) in_fabric[v] = node_[v] ? 0 : 1;
  for (const Link& link : links)
    if (node_[link.a.index()] != node_[link.b.index()])
      in_fabric[link.a.index()] = in_fabric[link.b.index()] = true;
  const Adjacency all = adjacency(links, [&](const Link& link) {
    return in_fabric[link.a.index()] && in_fabric[link.b.index()];
  });
  const auto hangs = [&](std::uint32_t v) {
    if (all.of(v).size() != 1) return false;
    const std::uint32_t on = all.of(v).front().to;
    return forwards_[on] && (all.of(on).size() > 1 || on < v);
  };
  std::vector<std::uint32_t> index(size, 0);
  for (std::uint32_t v = 0; v < size; ++v)
    if (in_fabric[v] && !hangs(v)) {
      index[v] = static_cast<std::uint32_t>(core_.size());
      core_.push_back(v);
    }
  portal_.resize(size);
  for (std::uint32_t v = 0; v < size; ++v) {
    if (!in_fabric[v]) continue;
    if (hangs(v))
      portal_[v] = Portal{v, index[all.of(v).front().to], all.of(v).front().link};
    else
      portal_[v] = Portal{v, index[v], std::nullopt};
  }
  const auto is_core = [&](VertexId v) { return portal_[v.index()] && !portal_[v.index()]->up; };
  fabric_ = adjacency(links, [&](const Link& link) { return is_core(link.a) && is_core(link.b); });
}

void Router::find_portals(std::span<const Vertex> vertices) {
  for (std::uint32_t v = 0; v < vertices.size(); ++v)
    if (node_[v] && portal_[v]) zones_[*node_[v]].portals.push_back(*portal_[v]);
  for (Zone& zone : zones_) std::ranges::stable_sort(zone.portals, {}, &Portal::core);
}

/// Vertices on one switch get consecutive numbers, as D-mod-k requires.
void Router::number_destinations() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < portal_.size(); ++v)
    if (portal_[v]) order.push_back(v);
  std::ranges::stable_sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return portal_[a]->core < portal_[b]->core; });
  number_.assign(portal_.size(), 0);
  std::uint32_t next = 0;
  for (const std::uint32_t v : order)
    if (node_[v] || portal_[v]->up) number_[v] = next++;
}

void Router::measure_heights() {
  height_.assign(core_.size(), UINT32_MAX);
  std::vector<std::uint32_t> reached;
  const auto reach = [&](std::uint32_t core, std::uint32_t height) {
    if (height_[core] != UINT32_MAX) return;
    height_[core] = height;
    reached.push_back(core);
  };
  for (const Zone& zone : zones_)
    for (const Portal& portal : zone.portals) reach(portal.core, 0);
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const Edge edge : fabric_.of(core_[reached[i]]))
      reach(portal_[edge.to]->core, height_[reached[i]] + 1);
}

void Router::measure_nodes() {
  std::map<std::vector<Cost>, std::uint32_t> known;  // what a table depends on
  for (Zone& zone : zones_) {
    std::vector<Cost> shape = {static_cast<Cost>(zone.vertices.size())};
    for (const std::uint32_t v : zone.vertices) {
      shape.push_back(forwards_[v]);
      for (const Edge edge : inner_.of(v)) {
        shape.push_back(-1 - static_cast<Cost>(local_[edge.to]));
        shape.push_back(cost_[edge.link]);
      }
    }
    const auto [at, is_new] =
        known.try_emplace(std::move(shape), static_cast<std::uint32_t>(tables_.size()));
    if (is_new) tables_.push_back(measure(zone));
    zone.table = at->second;
  }
}

std::vector<Router::Cost> Router::measure(const Zone& zone) const {
  const std::size_t size = zone.vertices.size();
  std::vector<Cost> table(size * size, kFar);
  Queue queue;
  for (const std::uint32_t source : zone.vertices) {
    Cost* const distance = table.data() + local_[source] * size;
    distance[local_[source]] = 0;
    queue.push({0, source});
    while (!queue.empty()) {
      const auto [cost, v] = queue.top();
      queue.pop();
      if (cost > distance[local_[v]] || !passable(v, source)) continue;
      for (const Edge edge : inner_.of(v))
        if (const Cost sum = cost + cost_[edge.link]; sum < distance[local_[edge.to]]) {
          distance[local_[edge.to]] = sum;
          queue.push({sum, edge.to});
        }
    }
  }
  return table;
}

Router::Cost Router::within(const Zone& zone, std::uint32_t a, std::uint32_t b) const {
  return tables_[zone.table][local_[a] * zone.vertices.size() + local_[b]];
}

/// The cost from v over the portal to the core.
Router::Cost Router::cost_to(std::uint32_t v, const Portal& portal) const {
  if (!passable(portal.vertex, v)) return kFar;
  const Cost inside = node_[v] ? within(zones_[*node_[v]], v, portal.vertex) : 0;
  return inside + (portal.up ? cost_[*portal.up] : 0);
}

Router::Exits Router::find_exits(std::uint32_t v) const {
  Exits result;
  const std::span<const Portal> portals = node_[v]
                                              ? std::span<const Portal>(zones_[*node_[v]].portals)
                                              : std::span<const Portal>(&*portal_[v], 1);
  for (const Portal& portal : portals) {
    const Cost cost = cost_to(v, portal);
    if (cost >= kFar) continue;
    if (result.empty() || result.back().core != portal.core)
      result.push_back({portal.core, cost, {}});
    Exit& exit = result.back();
    if (cost > exit.cost) continue;
    if (cost < exit.cost) exit.portals.clear();
    exit.cost = cost;
    exit.portals.push_back(portal);
  }
  return result;
}

const Router::Exits& Router::exits(std::uint32_t v) const {
  if (const Exits* known = exits_[v].load(std::memory_order_acquire)) return *known;
  auto result = std::make_unique<Exits>(find_exits(v));
  // As in to_core().
  const Exits* expected = nullptr;
  if (exits_[v].compare_exchange_strong(expected, result.get(), std::memory_order_acq_rel))
    return *result.release();
  return *expected;
}

/// The distances of all core vertices to this one.
const Router::Cost* Router::to_core(std::uint32_t core) const {
  if (const Cost* known = to_core_[core].load(std::memory_order_acquire)) return known;
  const std::uint32_t target = core_[core];
  auto distance = std::make_unique<Cost[]>(core_.size());
  std::fill_n(distance.get(), core_.size(), kFar);
  distance[core] = 0;
  Queue queue;
  queue.push({0, target});
  while (!queue.empty()) {
    const auto [cost, v] = queue.top();
    queue.pop();
    if (cost > distance[portal_[v]->core] || !passable(v, target)) continue;
    for (const Edge edge : fabric_.of(v))
      if (const Cost sum = cost + cost_[edge.link]; sum < distance[portal_[edge.to]->core]) {
        distance[portal_[edge.to]->core] = sum;
        queue.push({sum, edge.to});
      }
  }
  // Two threads may both have computed this; their results are equal.
  const Cost* expected = nullptr;
  if (to_core_[core].compare_exchange_strong(expected, distance.get(), std::memory_order_acq_rel))
    return distance.release();
  return expected;
}

/// The turn of `end` among the portals of these exits.
Router::Portal Router::pick(std::uint32_t end, std::span<const Exit* const> tied) const {
  std::size_t count = 0;
  for (const Exit* exit : tied) count += exit->portals.size();
  REHEARSE_CHECK(count > 0, "exits without portals");
  std::size_t turn = turns_[end] % count;
  for (; turn >= tied.front()->portals.size(); tied = tied.subspan(1))
    turn -= tied.front()->portals.size();
  return tied.front()->portals[turn];
}

std::optional<std::pair<Router::Portal, Router::Portal>> Router::choose_portals(
    std::uint32_t from, std::uint32_t to) const {
  const Exits &out = exits(from), &in = exits(to);
  if (out.size() == 1 && in.size() == 1) {
    if (out[0].cost + to_core(in[0].core)[out[0].core] + in[0].cost >= kFar) return std::nullopt;
    const Exit *const first = out.data(), *const last = in.data();
    return std::pair(pick(from, {&first, 1}), pick(to, {&last, 1}));
  }
  // The pairs of least total cost, and among these the least cost at the end.
  std::pair<Cost, Cost> least(kFar, 0);
  std::vector<std::pair<const Exit*, const Exit*>> quickest;
  quickest.reserve(8);
  for (const Exit& b : in) {
    const Cost* const distance = to_core(b.core);
    for (const Exit& a : out) {
      const std::pair total(a.cost + distance[a.core] + b.cost, b.cost);
      if (total > least || total.first >= kFar) continue;
      if (total < least) quickest.clear();
      least = total;
      quickest.emplace_back(&a, &b);
    }
  }
  if (quickest.empty()) return std::nullopt;
  std::vector<const Exit*> tied;
  for (const auto& [a, b] : quickest)
    if (tied.empty() || tied.back() != b) tied.push_back(b);
  const Portal last = pick(to, tied);
  tied.clear();
  for (const auto& [a, b] : quickest)
    if (b->core == last.core) tied.push_back(a);
  return std::pair(pick(from, tied), last);
}

void Router::take(std::uint32_t link, std::uint32_t from, std::vector<HopId>& hops) const {
  hops.push_back(HopId(2 * link + (end_a_[link] == from ? 0 : 1)));
}

/// The links of `v` on which a route of least cost continues to a destination with these distances.
template <class Distance>
void Router::find_tied(const Adjacency& adjacency, std::uint32_t v, std::uint32_t to,
                       Distance distance, std::vector<Edge>& tied) const {
  tied.clear();
  const Cost left = distance(v);
  for (const Edge edge : adjacency.of(v))
    if (passable(edge.to, to) && cost_[edge.link] + distance(edge.to) == left) tied.push_back(edge);
  REHEARSE_CHECK(!tied.empty(), "from {} to {}", v, to);
}

/// The first of these links, or, where traffic is spread, the one that the key chooses.
template <class Distance>
Router::Edge Router::choose_tied(const Adjacency& adjacency, std::uint32_t v, std::uint32_t to,
                                 const Distance& distance, std::uint32_t& key) const {
  const std::span<const Edge> edges = adjacency.of(v);
  const Cost left = distance(v);
  const auto is_tied = [&](const Edge& edge) {
    return passable(edge.to, to) && cost_[edge.link] + distance(edge.to) == left;
  };
  const auto first = std::ranges::find_if(edges, is_tied);
  REHEARSE_CHECK(first != edges.end(), "from {} to {}", v, to);
  if (!spread_[v]) return *first;
  const auto count = static_cast<std::uint32_t>(std::count_if(first, edges.end(), is_tied));
  auto chosen = first;
  for (std::uint32_t turn = key % count; turn > 0; --turn)
    chosen = std::find_if(chosen + 1, edges.end(), is_tied);
  // Each choice uses up its share of the number, so that the next level does not repeat it.
  key /= count;
  return *chosen;
}

void Router::descend_within(std::uint32_t from, std::uint32_t to, std::vector<HopId>& hops) const {
  if (from == to) return;
  const Zone& zone = zones_[*node_[from]];
  const Cost* const distances = tables_[zone.table].data() + local_[to] * zone.vertices.size();
  const auto distance = [&](std::uint32_t v) { return distances[local_[v]]; };
  std::uint32_t key = local_[to];
  for (std::uint32_t v = from; v != to;) {
    const Edge edge = choose_tied(inner_, v, to, distance, key);
    take(edge.link, v, hops);
    v = edge.to;
  }
}

void Router::cross_fabric(std::uint32_t from, std::uint32_t to, std::uint32_t key,
                          std::vector<HopId>& hops) const {
  const auto distance_to = [&](std::uint32_t core) {
    return
        [this, distances = to_core(core)](std::uint32_t v) { return distances[portal_[v]->core]; };
  };
  const auto height = [&](std::uint32_t v) { return height_[portal_[v]->core]; };
  const auto ahead = distance_to(to), back = distance_to(from);
  std::vector<Edge> tied;
  // For each link taken upwards, its position at its upper end among the tied links that lead back.
  std::vector<std::uint32_t> places;
  for (std::uint32_t v = core_[from]; v != core_[to];) {
    if (!places.empty()) find_tied(fabric_, v, core_[to], ahead, tied);
    Edge edge{};
    if (!places.empty() && height(tied.front().to) < height(v)) {
      edge = tied[places.back() % tied.size()];
      places.pop_back();
    } else {
      edge = choose_tied(fabric_, v, core_[to], ahead, key);
      if (height(edge.to) > height(v)) {
        std::uint32_t place = 0;
        if (spread_[v]) {
          find_tied(fabric_, edge.to, core_[from], back, tied);
          while (place < tied.size() && tied[place].link != edge.link) ++place;
        }
        places.push_back(place);
      }
    }
    take(edge.link, v, hops);
    v = edge.to;
  }
}

std::optional<std::vector<HopId>> Router::way(VertexId from_id, VertexId to_id) const {
  const std::uint32_t from = from_id.index(), to = to_id.index();
  std::vector<HopId> hops;
  if (from == to) return hops;
  hops.reserve(8);
  if (node_[from] && node_[from] == node_[to] && within(zones_[*node_[from]], from, to) < kFar) {
    descend_within(from, to, hops);
    return hops;
  }
  const auto portals = choose_portals(from, to);
  if (!portals) return std::nullopt;
  const auto& [first, last] = *portals;
  descend_within(from, first.vertex, hops);
  if (first.up) take(*first.up, first.vertex, hops);
  cross_fabric(first.core, last.core, number_[last.vertex], hops);
  if (last.up) take(*last.up, core_[last.core], hops);
  descend_within(last.vertex, to, hops);
  return hops;
}

/// The islands (core vertices that forward and reach each other) that v reaches.
std::vector<std::uint32_t> Router::islands_of(std::uint32_t v,
                                              const std::vector<std::uint32_t>& island) const {
  std::vector<std::uint32_t> reached;
  for (const Exit& exit : find_exits(v)) {
    const std::uint32_t at = core_[exit.core];
    if (forwards_[at])
      reached.push_back(island[exit.core]);
    else
      for (const Edge edge : fabric_.of(at))
        if (forwards_[edge.to]) reached.push_back(island[portal_[edge.to]->core]);
  }
  std::ranges::sort(reached);
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  return reached;
}

std::optional<std::pair<VertexId, VertexId>> Router::apart(std::span<const VertexId> ends) const {
  std::vector<std::uint32_t> island(core_.size());
  std::iota(island.begin(), island.end(), 0);
  const auto find = [&](std::uint32_t c) {
    while (island[c] != c) c = island[c] = island[island[c]];
    return c;
  };
  for (std::uint32_t c = 0; c < core_.size(); ++c)
    if (forwards_[core_[c]])
      for (const Edge edge : fabric_.of(core_[c]))
        if (forwards_[edge.to]) island[find(c)] = find(portal_[edge.to]->core);
  for (std::uint32_t c = 0; c < core_.size(); ++c) island[c] = find(c);

  // Ends on a common island reach each other, so each pair is tried only for the other ends.
  std::map<std::vector<std::uint32_t>, std::vector<VertexId>> groups;
  for (const VertexId end : ends) groups[islands_of(end.index(), island)].push_back(end);
  std::vector<std::uint32_t> common;
  for (auto a = groups.begin(); a != groups.end(); ++a)
    for (auto b = a; b != groups.end(); ++b) {
      common.clear();
      std::set_intersection(a->first.begin(), a->first.end(), b->first.begin(), b->first.end(),
                            std::back_inserter(common));
      if (!common.empty()) continue;
      for (const VertexId from : a->second)
        for (const VertexId to : b->second)
          if (from != to && !way(from, to)) return std::pair(from, to);
    }
  return std::nullopt;
}

}  // namespace rehearse::cluster
