// Properties of routes on clusters of random shape. A failure prints the seed.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/base/time.h"
#include "sim/cluster/templates.h"
#include "tests/support/cluster_ways.h"

namespace rehearse::cluster {
namespace {

using Random = std::mt19937_64;

std::uint32_t between(Random& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(random() % (most - least + 1));
}

/// Mostly from a template, sometimes any graph at all; nothing where its numbers do not fit
/// together.
Result<ClusterBuilder> random_template(Random& random) {
  const auto node_kind =
      static_cast<NodeKind>(between(random, 0, static_cast<std::uint32_t>(NodeKind::kMesh)));
  const auto fabric_kind =
      static_cast<FabricKind>(between(random, 0, static_cast<std::uint32_t>(FabricKind::kWan)));
  const auto group = [&](NodeKind kind, const char* device) {
    return NodeGroup{.node = {.kind = kind,
                              .device = device,
                              .devices = between(random, 1, 9),
                              .link = test::link_type("link", 100, 2),
                              .pcie = test::link_type("pcie", 12, 1),
                              .sockets = test::link_type("socket", 10, 0.5),
                              .forward = between(random, 0, 1) == 1},
                     .nodes = between(random, 1, 9)};
  };
  ClusterTemplate t{.groups = {group(node_kind, "v100_sxm2_16")}};
  if (between(random, 0, 2) == 0) {
    t.groups.push_back(group(NodeKind::kPcie, "t4"));
    if (between(random, 0, 1) == 0)
      t.groups.back().nics = NodeNics{test::link_type("slow net", 1, 10), between(random, 1, 3)};
  }
  std::uint32_t nodes = 0;
  for (const NodeGroup& each : t.groups) nodes += each.nodes;
  t.fabric = FabricTemplate{.kind = fabric_kind,
                            .link = test::link_type("net", between(random, 1, 50), 1),
                            .links = between(random, 1, 9),
                            .spines = between(random, 0, 3),
                            .levels = between(random, 1, 3),
                            .radix = between(random, 2, 12),
                            .oversubscription = between(random, 1, 3) / 1.0,
                            .groups = between(random, 2, 5),
                            .routers = between(random, 1, 4),
                            .dimensions = {nodes},
                            .regions = between(random, 2, 3),
                            .wan = test::link_type("wan", 0.1, 20000)};
  if (between(random, 0, 1) == 1) t.fabric->dimensions = {t.groups.front().node.devices, nodes};
  return make_cluster(t);
}

/// Devices, NICs and switches linked at random, with two rates, so that ways tie and differ.
Result<ClusterBuilder> random_graph(Random& random) {
  ClusterBuilder builder;
  std::vector<VertexId> all;
  const std::uint32_t nodes = between(random, 1, 5);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const NodeId node = builder.add_node(name);
    for (std::uint32_t i = between(random, 1, 3); i > 0; --i) {
      const DeviceId device = builder.add_device(node, name + "d" + std::to_string(i), "t4");
      builder.set_forwards(device, between(random, 0, 1) == 1);
      all.push_back(builder.vertex_of(device));
    }
    for (std::uint32_t i = between(random, 0, 3); i > 0; --i)
      all.push_back(builder.add({name + "v" + std::to_string(i), VertexKind::kNic, node,
                                 between(random, 0, 4) > 0, between(random, 0, 1) == 1}));
  }
  for (std::uint32_t i = between(random, 0, 4); i > 0; --i)
    all.push_back(builder.add({"s" + std::to_string(i), VertexKind::kSwitch, std::nullopt,
                               between(random, 0, 4) > 0, between(random, 0, 1) == 1}));
  const std::uint32_t types[] = {builder.add(test::link_type("a", 1, 1)),
                                 builder.add(test::link_type("b", 1, 100))};
  const auto size = static_cast<std::uint32_t>(all.size());
  for (std::uint32_t i = between(random, size, 4 * size); i > 0; --i) {
    const VertexId a = all[between(random, 0, size - 1)], b = all[between(random, 0, size - 1)];
    if (a != b) builder.connect(a, b, types[between(random, 0, 1)]);
  }
  return builder;
}

Picoseconds cost_of(const Cluster& c, const Route& route) {
  Picoseconds sum(0);
  for (const HopId hop : route.hops) {
    const LinkType& type = c.type(Cluster::link_of(hop));
    sum += Picoseconds::from(type.latency + Bytes::mib(1) / type.rate);
  }
  return sum;
}

void check_routes(const Cluster& c) {
  for (std::uint32_t a = 0; a < c.devices().size(); ++a)
    for (std::uint32_t b = 0; b < c.devices().size(); ++b) {
      const Route there = c.route(DeviceId(a), DeviceId(b));
      const VertexId end = c.devices()[b].vertex;
      VertexId at = c.devices()[a].vertex;
      std::set<VertexId> passed = {at};
      for (const HopId hop : there.hops) {
        REQUIRE(hop.index() < c.hop_count());
        const Link& link = c.links()[Cluster::link_of(hop).index()];
        REQUIRE((hop.index() % 2 == 0 ? link.a : link.b) == at);
        at = hop.index() % 2 == 0 ? link.b : link.a;
        REQUIRE(passed.insert(at).second);
        REQUIRE((at == end || c.vertices()[at.index()].forwards));
      }
      REQUIRE(at == end);
      const Route back = c.route(DeviceId(b), DeviceId(a));
      REQUIRE(cost_of(c, there) == cost_of(c, back));
      const auto again = c.route_to(DeviceId(a), end);
      REQUIRE(again);
      REQUIRE(again->hops == there.hops);
    }
}

TEST_CASE("in clusters of random templates every pair has a sound route") {
  int made = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Result<ClusterBuilder> builder = random_template(random);
    if (!builder) continue;
    // Rails without a spine, whose NICs some devices do not reach, may leave pairs apart.
    const Result<Cluster> c = std::move(*builder).build();
    if (!c) {
      CHECK(to_string(c.error()).find("there is no route from") == 0);
      continue;
    }
    ++made;
    check_routes(*c);
  }
  CHECK(made > 50);
}

/// The types of a route's links, and their ends within nodes.
std::vector<std::uint32_t> steps_of(const Cluster& c, const Route& route, NodeId from, NodeId to) {
  std::vector<std::uint32_t> steps;
  for (const HopId hop : route.hops) {
    const Link& link = c.links()[Cluster::link_of(hop).index()];
    steps.push_back(link.type);
    bool own = false;
    for (const VertexId end : {link.a, link.b}) {
      const auto node = c.vertices()[end.index()].node;
      own |= node == from || node == to;
      REQUIRE((!node || node == from || node == to));
      const std::uint32_t place =
          node ? end.index() -
                     c.devices()[c.nodes()[node->index()].devices.front().index()].vertex.index()
               : end.index();
      steps.push_back(place);
    }
    REQUIRE(own);
  }
  return steps;
}

TEST_CASE("nodes of equal kind can be exchanged, and routes use links of their ends alone") {
  int exchanged = 0, joined = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Result<ClusterBuilder> builder = random_template(random);
    if (!builder) continue;
    const Result<Cluster> c = std::move(*builder).build();
    if (!c) continue;
    const auto kinds = c->node_kinds();
    joined += kinds.empty();
    for (std::uint32_t a = 0; a < kinds.size(); ++a)
      for (std::uint32_t b = 0; b < kinds.size(); ++b) {
        const std::uint32_t other =
            between(random, 0, static_cast<std::uint32_t>(kinds.size()) - 1);
        if (a == b || other == b || kinds[a] != kinds[other]) continue;
        const auto& from = c->nodes()[a].devices;
        const auto& instead = c->nodes()[other].devices;
        const auto& to = c->nodes()[b].devices;
        REQUIRE(from.size() == instead.size());
        for (std::size_t i = 0; i < from.size(); ++i)
          for (const DeviceId there : to) {
            REQUIRE(steps_of(*c, c->route(from[i], there), NodeId(a), NodeId(b)) ==
                    steps_of(*c, c->route(instead[i], there), NodeId(other), NodeId(b)));
            REQUIRE(steps_of(*c, c->route(there, from[i]), NodeId(b), NodeId(a)) ==
                    steps_of(*c, c->route(there, instead[i]), NodeId(b), NodeId(other)));
          }
        exchanged += a != other;
      }
  }
  CHECK(exchanged > 500);
  CHECK(joined > 50);
}

/// The least cost by the rules of cluster.h, by relaxing every link until nothing changes.
std::int64_t naive_cost(const Cluster& c, VertexId from, VertexId to) {
  constexpr std::int64_t kFar = INT64_MAX / 4;
  const auto vertices = c.vertices();
  const auto node = [&](VertexId v) { return vertices[v.index()].node; };
  std::vector<char> fabric(vertices.size());
  for (std::size_t v = 0; v < vertices.size(); ++v) fabric[v] = vertices[v].node ? 0 : 1;
  for (const Link& link : c.links())
    if (node(link.a) != node(link.b)) fabric[link.a.index()] = fabric[link.b.index()] = true;
  using Costs = std::vector<std::int64_t>;
  const auto relax = [&](Costs costs, auto usable) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& link : c.links())
        for (const auto& [a, b] : {std::pair(link.a, link.b), {link.b, link.a}}) {
          if (!usable(link) || costs[a.index()] >= kFar) continue;
          if (a != from && !vertices[a.index()].forwards) continue;
          const LinkType& type = c.link_types()[link.type];
          const std::int64_t sum =
              costs[a.index()] +
              Picoseconds::from(type.latency + Bytes::mib(1) / type.rate).count();
          if (sum < costs[b.index()]) {
            costs[b.index()] = sum;
            changed = true;
          }
        }
    }
    return costs;
  };
  const auto inside_of = [&](VertexId end) {
    return [&, end](const Link& link) {
      return node(end) && node(link.a) == node(end) && node(link.b) == node(end);
    };
  };
  Costs costs(vertices.size(), kFar);
  costs[from.index()] = 0;
  costs = relax(std::move(costs), inside_of(from));
  if (node(from) == node(to) && costs[to.index()] < kFar) return costs[to.index()];
  for (std::size_t v = 0; v < costs.size(); ++v)
    if (!fabric[v]) costs[v] = kFar;
  costs = relax(std::move(costs),
                [&](const Link& link) { return fabric[link.a.index()] && fabric[link.b.index()]; });
  return relax(std::move(costs), inside_of(to))[to.index()];
}

TEST_CASE("in graphs of any shape routes cost what a naive search finds") {
  int made = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Result<Cluster> c = std::move(*random_graph(random)).build();
    if (!c) {
      ++refused;
      continue;
    }
    ++made;
    check_routes(*c);
    for (std::uint32_t a = 0; a < c->devices().size(); ++a)
      for (std::uint32_t b = 0; b < c->devices().size(); ++b)
        if (a != b)
          REQUIRE(cost_of(*c, c->route(DeviceId(a), DeviceId(b))).count() ==
                  naive_cost(*c, c->devices()[a].vertex, c->devices()[b].vertex));
  }
  CHECK(made > 100);
  CHECK(refused > 100);
}

FabricTemplate fabric_of(FabricKind kind) {
  return {.kind = kind, .link = test::link_type("net", 20, 1), .links = 8};
}

Cluster nodes_on(const FabricTemplate& fabric, std::uint32_t nodes) {
  return test::built(
      make_cluster({.groups = {{.node = {.kind = NodeKind::kNvswitch,
                                         .device = "h100_sxm5_80",
                                         .devices = 8,
                                         .link = test::link_type("link", 400, 1),
                                         .pcie = test::link_type("pcie", 50, 1),
                                         .sockets = test::link_type("socket", 50, 0.5)},
                                .nodes = nodes}},
                    .fabric = fabric}));
}

/// GB/s from the devices of the first half of the nodes to those of the other half, over any ways: a
/// largest flow, by shortest augmenting paths (Edmonds and Karp, J. ACM 19, 1972).
double bisection(const Cluster& c) {
  const std::size_t n = c.vertices().size(), source = n, sink = n + 1;
  std::vector<std::map<std::size_t, double>> left(n + 2);
  for (const Link& link : c.links()) {
    const double rate = c.link_types()[link.type].rate.gb_per_s();
    left[link.a.index()][link.b.index()] += rate;
    left[link.b.index()][link.a.index()] += rate;
  }
  for (const Device& device : c.devices()) {
    const bool first = device.node.index() < c.nodes().size() / 2;
    const std::size_t v = device.vertex.index();
    left[first ? source : v][first ? v : sink] = 1e9;
    left[first ? v : sink][first ? source : v] = 0;
  }
  for (double whole = 0;;) {
    std::vector<std::size_t> from(n + 2, SIZE_MAX), queue = {source};
    from[source] = source;
    for (std::size_t i = 0; i < queue.size() && from[sink] == SIZE_MAX; ++i)
      for (const auto& [to, rate] : left[queue[i]])
        if (rate > 1e-9 && from[to] == SIZE_MAX) {
          from[to] = queue[i];
          queue.push_back(to);
        }
    if (from[sink] == SIZE_MAX) return whole;
    double most = 1e9;
    for (std::size_t v = sink; v != source; v = from[v]) most = std::min(most, left[from[v]][v]);
    for (std::size_t v = sink; v != source; v = from[v]) {
      left[from[v]][v] -= most;
      left[v][from[v]] += most;
    }
    whole += most;
  }
}

TEST_CASE("the bisection of every built-in fabric is that of its formula") {
  constexpr double kNic = 20, kNics = 8;
  const auto check = [](const char* name, const FabricTemplate& fabric, std::uint32_t nodes,
                        double expected) {
    INFO(name << ", " << nodes << " nodes");
    CHECK(bisection(nodes_on(fabric, nodes)) == Approx(expected));
  };
  // Half of the NICs, where no link up is missing.
  for (const std::uint32_t nodes : {2U, 4U, 6U}) {
    const double all = 0.5 * nodes * kNics * kNic;
    check("switch", fabric_of(FabricKind::kSwitch), nodes, all);
    check("rails", fabric_of(FabricKind::kRails), nodes, all);
    FabricTemplate tree = fabric_of(FabricKind::kFatTree);
    tree.radix = 16;
    check("fat tree", tree, nodes, all);
  }
  // Leaves of 12 links down and 4 up: a third of the NICs of six nodes, which fill two leaves a half.
  FabricTemplate tree = fabric_of(FabricKind::kFatTree);
  tree.radix = 16;
  tree.oversubscription = 3;
  check("oversubscribed fat tree", tree, 6, 3 * kNics * kNic / 3);
  // 4 x 4: a cut of two planes of four links each.
  FabricTemplate torus = fabric_of(FabricKind::kTorus);
  torus.dimensions = {4, 4};
  check("torus", torus, 16, 2 * 4 * kNic);
  // Four groups: two on each side, with a link to each of the others.
  FabricTemplate dragonfly = fabric_of(FabricKind::kDragonfly);
  dragonfly.groups = 4;
  dragonfly.routers = 2;
  check("dragonfly", dragonfly, 4, 2 * 2 * kNic);
  FabricTemplate wan = fabric_of(FabricKind::kWan);
  wan.regions = 2;
  wan.wan = test::link_type("wan", 3, 10'000);
  check("wan", wan, 4, 3);
}

using Permutation = std::vector<std::uint32_t>;

Permutation shuffled(std::uint32_t count, Random& random) {
  Permutation to(count);
  std::iota(to.begin(), to.end(), 0U);
  std::shuffle(to.begin(), to.end(), random);
  return to;
}

/// Every device sends to another at the full rate of a NIC: the largest share of its rate that a link
/// has to carry.
double fullest_link(const Cluster& c, const Permutation& to) {
  std::vector<double> load(c.hop_count(), 0);
  for (std::uint32_t from = 0; from < to.size(); ++from) {
    if (c.devices()[from].node == c.devices()[to[from]].node) continue;
    for (const HopId hop : c.route(DeviceId(from), DeviceId(to[from])).hops)
      load[hop.index()] += 20;  // GB/s of a NIC
  }
  double fullest = 0;
  for (std::size_t hop = 0; hop < load.size(); ++hop)
    fullest = std::max(fullest, load[hop] / c.type(Cluster::link_of(HopId(hop))).rate.gb_per_s());
  return fullest;
}

TEST_CASE("without oversubscription every permutation of ranks gets the full rate of its NICs") {
  std::vector<std::pair<std::string, FabricTemplate>> fabrics;
  fabrics.emplace_back("switch", fabric_of(FabricKind::kSwitch));
  // The two NICs of a PCIe switch are on one leaf: otherwise both of its devices take the NIC on the
  // leaf of their destination.
  for (const std::uint32_t radix : {4, 8, 16, 40, 64}) {
    fabrics.emplace_back("fat tree of radix " + std::to_string(radix),
                         fabric_of(FabricKind::kFatTree));
    fabrics.back().second.levels = radix == 4 ? 4 : 3;
    fabrics.back().second.radix = radix;
  }
  Random random(7);
  for (const auto& [name, shape] : fabrics)
    for (const std::uint32_t nodes : {2U, 3U, 4U, 6U, 8U}) {
      if (shape.radix < 8 && nodes > 4) continue;  // four levels of radix 4 have 32 ports
      const Cluster c = nodes_on(shape, nodes);
      for (int trial = 0; trial < 50; ++trial) {
        INFO(name << ", " << nodes << " nodes, trial " << trial);
        REQUIRE(fullest_link(c, shuffled(8 * nodes, random)) <= 1 + 1e-9);
      }
      // All traffic leaves its node.
      for (std::uint32_t shift = 8; shift <= 8 * nodes - 8; ++shift) {
        Permutation to(8 * nodes);
        for (std::uint32_t i = 0; i < to.size(); ++i) to[i] = (i + shift) % (8 * nodes);
        INFO(name << ", " << nodes << " nodes, shift " << shift);
        REQUIRE(fullest_link(c, to) <= 1 + 1e-9);
      }
    }
}

TEST_CASE("on rails every permutation of nodes on each rail gets the full rate of its NICs") {
  // Other traffic changes to the rail of its destination within the node, and meets the traffic of the
  // device of that rail there.
  Random random(7);
  for (const std::uint32_t spines : {0U, 4U})
    for (const std::uint32_t nodes : {2U, 4U, 8U}) {
      FabricTemplate rails = fabric_of(FabricKind::kRails);
      rails.spines = spines;
      const Cluster c = nodes_on(rails, nodes);
      for (int trial = 0; trial < 50; ++trial) {
        Permutation to(8 * nodes);
        for (std::uint32_t rail = 0; rail < 8; ++rail) {
          const Permutation node = shuffled(nodes, random);
          for (std::uint32_t i = 0; i < nodes; ++i) to[8 * i + rail] = 8 * node[i] + rail;
        }
        INFO(spines << " spines, " << nodes << " nodes, trial " << trial);
        REQUIRE(fullest_link(c, to) <= 1 + 1e-9);
      }
    }
}

TEST_CASE("an oversubscribed fat tree gives a permutation that leaves its leaves that much less") {
  FabricTemplate tree = fabric_of(FabricKind::kFatTree);
  tree.radix = 12;
  tree.oversubscription = 2;  // leaves of 8 links down, one node each, and 4 up
  const Cluster c = nodes_on(tree, 4);
  Random random(7);
  for (int trial = 0; trial < 50; ++trial) {
    Permutation to(32);
    const Permutation within = shuffled(8, random);
    for (std::uint32_t i = 0; i < 32; ++i) to[i] = (i / 8 + 1) % 4 * 8 + within[i % 8];
    REQUIRE(fullest_link(c, to) == Approx(2));
  }
}

}  // namespace
}  // namespace rehearse::cluster
