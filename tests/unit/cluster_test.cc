// The rules of routes, on clusters small enough to see.
#include "sim/cluster/cluster.h"

#include <cmath>
#include <map>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/cluster_ways.h"

namespace rehearse::cluster {
namespace {

using test::link_type;
using test::way;

/// Vertices by name, linked by "a-b" of one type.
struct Small {
  ClusterBuilder builder;
  std::map<std::string, VertexId> at;
  std::uint32_t type = builder.add(link_type("wire", 1, 1));

  DeviceId device(NodeId node, const std::string& name, bool forwards = false) {
    const DeviceId id = builder.add_device(node, name, "v100_sxm2_16");
    builder.set_forwards(id, forwards);
    at.emplace(name, builder.vertex_of(id));
    return id;
  }
  void other(const std::string& name, VertexKind kind, std::optional<NodeId> node = {},
             bool forwards = true, bool spread = false) {
    at.emplace(name, builder.add({name, kind, node, forwards, spread}));
  }
  LinkId join(const std::string& a, const std::string& b) {
    return builder.connect(at.at(a), at.at(b), type);
  }
  LinkId join(const std::string& a, const std::string& b, std::uint32_t by) {
    return builder.connect(at.at(a), at.at(b), by);
  }
  Cluster build() { return test::built(std::move(builder)); }
  std::string error() {
    const Result<Cluster> made = std::move(builder).build();
    REQUIRE_FALSE(made);
    return to_string(made.error());
  }
};

TEST_CASE("a route has the sum of latencies and the least rate") {
  Small s;
  const NodeId node = s.builder.add_node("n");
  s.device(node, "a");
  s.device(node, "b");
  s.other("s", VertexKind::kSwitch, node);
  s.join("a", "s", s.builder.add(link_type("slow", 10, 2)));
  s.join("s", "b", s.builder.add(link_type("fast", 40, 3)));
  const Cluster c = s.build();
  CHECK(way(c, 0, 1) == "a s b");
  const Route there = c.route(DeviceId(0), DeviceId(1)), back = c.route(DeviceId(1), DeviceId(0));
  CHECK(there.path.latency.us() == Approx(5));
  CHECK(there.path.rate.gb_per_s() == Approx(10));
  CHECK(there.hops == std::vector{HopId(0), HopId(2)});
  CHECK(back.hops == std::vector{HopId(3), HopId(1)});
  CHECK(c.hop_count() == 4);
  const Route self = c.route(DeviceId(0), DeviceId(0));
  CHECK(self.hops.empty());
  CHECK(self.path.latency == Seconds::s(0));
  CHECK(std::isinf(self.path.rate.bytes_per_s()));
}

TEST_CASE("the fastest route for 1 MiB is taken, not the one with fewer links") {
  // Direct: 0 + 1048.6 us at 1 GB/s. Over s: twice 1 us + 104.9 us at 10 GB/s.
  Small s;
  const NodeId node = s.builder.add_node("n");
  s.device(node, "a");
  s.device(node, "b");
  s.other("s", VertexKind::kSwitch, node);
  s.join("a", "b");
  const auto fast = s.builder.add(link_type("fast", 10, 1));
  s.join("a", "s", fast);
  s.join("s", "b", fast);
  CHECK(way(s.build(), 0, 1) == "a s b");
}

TEST_CASE("routes pass only through vertices that forward") {
  const auto chain = [](bool forwards) {
    Small s;
    const NodeId node = s.builder.add_node("n");
    for (const char* name : {"a", "b", "c"}) s.device(node, name, forwards);
    s.join("a", "b");
    s.join("b", "c");
    return s;
  };
  CHECK(way(chain(true).build(), 0, 2) == "a b c");
  CHECK(chain(false).error() ==
        "there is no route from 'a' to 'c'; links through vertices that forward");
}

TEST_CASE("devices of a node take equally fast NICs in turn") {
  Small s;
  for (const char* n : {"p", "q"}) {
    const NodeId node = s.builder.add_node(n);
    const std::string name(n);
    for (const char* i : {"0", "1", "2"}) s.device(node, name + i);
    s.other(name + "host", VertexKind::kHost, node);
    for (const char* i : {"0", "1", "2"}) s.join(name + i, name + "host");
    for (const char* i : {"x", "y"}) {
      s.other(name + i, VertexKind::kNic, node);
      s.join(name + i, name + "host");
    }
  }
  s.other("leaf", VertexKind::kSwitch);
  for (const char* nic : {"px", "py", "qx", "qy"}) s.join(nic, "leaf");
  const Cluster c = s.build();
  CHECK(way(c, 0, 3) == "p0 phost px leaf qx qhost q0");
  CHECK(way(c, 1, 3) == "p1 phost py leaf qx qhost q0");
  CHECK(way(c, 2, 4) == "p2 phost px leaf qy qhost q1");
  CHECK(way(c, 0, 2) == "p0 phost p2");
  CHECK(c.nodes()[1].devices.size() == 3);
  CHECK(c.nodes()[1].nics.size() == 2);
}

TEST_CASE("a vertex that spreads chooses by the destination, any other the link added first") {
  for (const bool spread : {false, true}) {
    Small s;
    for (int n = 0; n < 4; ++n)
      s.device(s.builder.add_node("n" + std::to_string(n)), "d" + std::to_string(n));
    s.other("l", VertexKind::kSwitch, {}, true, spread);
    s.other("m", VertexKind::kSwitch, {}, true, spread);
    s.other("x", VertexKind::kSwitch);
    s.other("y", VertexKind::kSwitch);
    for (const char* d : {"d0", "d1"}) s.join(d, "l");
    for (const char* d : {"d2", "d3"}) s.join(d, "m");
    for (const char* l : {"l", "m"})
      for (const char* spine : {"x", "y"}) s.join(l, spine);
    const Cluster c = s.build();
    CHECK(way(c, 0, 2) == "d0 l x m d2");
    CHECK(way(c, 1, 2) == "d1 l x m d2");
    CHECK(way(c, 0, 3) == (spread ? "d0 l y m d3" : "d0 l x m d3"));
    CHECK(way(c, 3, 1) == (spread ? "d3 m y l d1" : "d3 m x l d1"));
  }
}

TEST_CASE("nodes of one kind differ in nothing, and no route of others uses their links") {
  const auto cluster = [](const std::string& model, bool trunk, bool change, bool route) {
    Small s;
    for (int n = 0; n < 3; ++n) {
      const std::string name = "d" + std::to_string(n);
      const NodeId node = s.builder.add_node("n" + std::to_string(n));
      s.at.emplace(name,
                   s.builder.vertex_of(s.builder.add_device(node, name, n == 2 ? model : "gpu")));
    }
    s.other("l", VertexKind::kSwitch);
    s.other("m", VertexKind::kSwitch);
    for (const char* d : {"d0", "d1"}) s.join(d, "l");
    s.join("d2", trunk ? "m" : "l");
    if (trunk) s.join("l", "m");
    if (change) s.builder.set_changes(LinkId(1), {{Seconds::s(1), 0.5}});
    if (route) REQUIRE(s.builder.set_route(DeviceId(0), DeviceId(1), {LinkId(0), LinkId(1)}));
    const Cluster c = s.build();
    return std::vector<std::uint32_t>(c.node_kinds().begin(), c.node_kinds().end());
  };
  using Kinds = std::vector<std::uint32_t>;
  CHECK(cluster("gpu", false, false, false) == Kinds{0, 0, 0});
  CHECK(cluster("other", false, false, false) == Kinds{0, 0, 1});
  CHECK(cluster("gpu", false, true, false) == Kinds{0, 1, 0});
  CHECK(cluster("gpu", true, false, false).empty());
  CHECK(cluster("gpu", false, false, true).empty());
}

TEST_CASE("NICs without a switch, and a third node that does not forward") {
  Small s;
  for (const char* n : {"0", "1", "2"}) {
    const NodeId node = s.builder.add_node(n);
    const std::string name(n);
    s.device(node, "d" + name);
    for (const char* side : {"l", "r"}) {
      s.other(side + name, VertexKind::kNic, node);
      s.join("d" + name, side + name);
    }
  }
  s.join("r0", "l1");
  s.join("r1", "l2");
  // d1 does not forward.
  CHECK(s.error() == "there is no route from 'd0' to 'd2'; links through vertices that forward");
}

TEST_CASE("routes lead to any vertex, or nowhere") {
  Small s;
  const NodeId node = s.builder.add_node("n"), other = s.builder.add_node("m");
  s.device(node, "a");
  s.device(other, "b");
  s.other("nic", VertexKind::kNic, node);
  s.other("host", VertexKind::kHost, node);
  s.other("net", VertexKind::kSwitch);
  s.other("disk", VertexKind::kStorage, {}, false);
  s.other("alone", VertexKind::kStorage, {}, false);
  s.join("a", "nic");
  s.join("nic", "host");
  s.join("nic", "net");
  s.join("b", "net");
  s.join("disk", "net");
  const std::map<std::string, VertexId> at = s.at;
  const Cluster c = s.build();
  const auto to = [&](std::uint32_t from, const char* name) {
    const auto route = c.route_to(DeviceId(from), at.at(name));
    return route ? way(c, from, *route) : "no way";
  };
  CHECK(to(0, "disk") == "a nic net disk");
  CHECK(to(1, "disk") == "b net disk");
  CHECK(to(0, "host") == "a nic host");
  CHECK(to(1, "host") == "b net nic host");
  CHECK(to(1, "net") == "b net");
  CHECK(to(0, "b") == "a nic net b");
  CHECK(to(0, "alone") == "no way");
}

TEST_CASE("given routes come first, in their direction") {
  Small s;
  const NodeId node = s.builder.add_node("n");
  const DeviceId a = s.device(node, "a"), b = s.device(node, "b");
  s.other("s", VertexKind::kSwitch, node);
  s.other("t", VertexKind::kSwitch, node);
  const LinkId ab = s.join("a", "b"), as = s.join("a", "s"), st = s.join("s", "t"),
               sb = s.join("s", "b");
  const auto error = [&](const std::vector<LinkId>& links) {
    const Status ok = s.builder.set_route(a, b, links);
    return ok ? "" : to_string(ok.error());
  };
  CHECK(error({as, ab}) ==
        "the route has a gap: the link a-b does not start at 's'; consecutive links");
  CHECK(error({as, st, st}) == "the route has a cycle: it passes 's' twice; each vertex once");
  CHECK(error({as}) == "the route ends at 's'; its end at 'b'");
  CHECK(error({as, sb}).empty());
  const Cluster c = s.build();
  CHECK(way(c, 0, 1) == "a s b");
  CHECK(way(c, 1, 0) == "b a");
}

TEST_CASE("a builder refuses an invalid cluster") {
  const auto pair = [] {
    Small s;
    const NodeId node = s.builder.add_node("n");
    s.device(node, "a");
    s.device(node, "b");
    return s;
  };
  CHECK(Small().error() == "the cluster has no device");
  CHECK(pair().error() == "there is no route from 'a' to 'b'; links through vertices that forward");
  Small twice = pair();
  twice.builder.add({"a", VertexKind::kNic, {}});
  CHECK(twice.error() == "two vertices are called 'a'; unique names");
  Small types = pair();
  types.builder.add(link_type("wire", 1, 1));
  CHECK(types.error() == "two link types are called 'wire'; unique names");
  Small loop = pair();
  loop.join("a", "a");
  CHECK(loop.error() == "the link a-a connects a vertex to itself");
  for (const auto& [rate, latency, key] : {std::tuple{0.0, 1.0, "rate"},
                                           {std::nan(""), 1.0, "rate"},
                                           {1.0, -1.0, "latency"},
                                           {1.0, 2e6, "latency"}}) {
    Small s = pair();
    s.join("a", "b", s.builder.add(link_type("bad", rate, latency)));
    CHECK(s.error().find("the " + std::string(key) + " of 'bad' is out of range") == 0);
  }
  Small changes = pair();
  const LinkId link = changes.join("a", "b");
  changes.builder.set_changes(link, {{Seconds::s(2), 0.5}, {Seconds::s(1), 1}});
  CHECK(changes.error().find("the changes of the link a-b are out of order") == 0);
}

TEST_CASE("several threads find the same routes") {
  // A torus of 8 x 8 devices, whose distances are found on first use.
  Small s;
  for (int i = 0; i < 64; ++i)
    s.device(s.builder.add_node("n" + std::to_string(i)), std::to_string(i), true);
  for (int i = 0; i < 64; ++i) {
    s.join(std::to_string(i), std::to_string(i / 8 * 8 + (i + 1) % 8));
    s.join(std::to_string(i), std::to_string((i + 8) % 64));
  }
  const Cluster c = s.build();
  const auto all = [&] {
    std::vector<HopId> hops;
    for (std::uint32_t a = 0; a < 64; ++a)
      for (std::uint32_t b = 0; b < 64; ++b)
        for (const HopId hop : c.route(DeviceId(a), DeviceId(b)).hops) hops.push_back(hop);
    return hops;
  };
  std::vector<std::vector<HopId>> found(4);
  std::vector<std::thread> threads;
  for (auto& into : found) threads.emplace_back([&] { into = all(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& hops : found) CHECK(hops == found.front());
}

}  // namespace
}  // namespace rehearse::cluster
