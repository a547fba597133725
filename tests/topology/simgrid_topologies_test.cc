// Our fabrics against SimGrid's own fat tree, torus and dragonfly of equal parameters: topology,
// routes and the division of links are SimGrid's on one side and ours on the other. They agree on
// the end of every message. The only exception is a fat tree of the template: its trunks carry
// traffic as adaptive routing does, and SimGrid routes statically by destination (D-mod-k).
//
// SimGrid allows one engine per process, so that all topologies are zones of one platform.
#include <algorithm>
#include <numeric>
#include <random>

#include <catch2/catch.hpp>
#include <simgrid/s4u.hpp>

#include "models/comm/placement.h"
#include "sim/cluster/templates.h"
#include "sim/engine/engine.h"
#include "tests/support/cluster_ways.h"
#include "tests/support/static_fat_tree.h"

namespace rehearse {
namespace {

namespace s4u = simgrid::s4u;
using cluster::Cluster;
using cluster::FabricKind;
using cluster::FabricTemplate;

constexpr double kRate = 20e9;

/// A message between two places of a topology, in bytes. All begin at once.
struct Message {
  std::uint32_t from, to;
  double bytes;
};
using Traffic = std::vector<Message>;

/// SimGrid's zones, each with its hosts in SimGrid's order.
class Zones {
 public:
  enum Zone { kTree, kThreeLevels, kOversubscribed, kTorus, kDragonfly };

  static Zones& get() {
    static Zones zones;
    return zones;
  }

  std::vector<double> ends(Zone zone, const Traffic& traffic) {
    const double begin = s4u::Engine::get_clock();
    ends_.assign(traffic.size(), -1);
    std::vector<s4u::CommPtr> all;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      s4u::CommPtr comm = s4u::Comm::sendto_init();
      comm->set_payload_size(static_cast<std::uint64_t>(traffic[i].bytes));
      comm->set_data(reinterpret_cast<void*>(i));
      comm->set_source(hosts_[zone][traffic[i].from]);
      comm->set_destination(hosts_[zone][traffic[i].to]);
      all.push_back(std::move(comm));
    }
    engine_->run();
    for (double& end : ends_) end -= begin;
    return ends_;
  }

 private:
  Zones() {
    static char name[] = "topologies", quiet[] = "--log=xbt_cfg.thresh:warning";
    static char* arguments[] = {name, quiet, nullptr};
    int count = 2;
    engine_ = std::make_unique<s4u::Engine>(&count, arguments);
    // As of our own carrier: fair shares, without a window or a share for acknowledgements.
    for (const char* option :
         {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
          "network/weight-S:0", "surf/precision:1e-12", "maxmin/precision:1e-12"})
      s4u::Engine::set_config(option);
    root_ = s4u::create_full_zone("root");
    const auto fat_tree = [this](const char* zone, const s4u::FatTreeParams& shape) {
      s4u::create_fatTree_zone(zone, root_, shape, hosts(zone), kRate, 0,
                               s4u::Link::SharingPolicy::SPLITDUPLEX)
          ->seal();
    };
    fat_tree("tree", {2, {4, 8}, {1, 4}, {1, 1}});
    fat_tree("three_levels", {3, {2, 2, 4}, {1, 2, 2}, {1, 1, 1}});
    fat_tree("oversubscribed", {2, {8, 4}, {1, 4}, {1, 1}});
    s4u::create_torus_zone("torus", root_, {5, 3, 3}, hosts("torus"), kRate, 0,
                           s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    s4u::create_dragonfly_zone("dragonfly", root_, {{4, 1}, {1, 1}, {4, 1}, 2}, hosts("dragonfly"),
                               kRate, 0, s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    root_->seal();
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      const auto i = reinterpret_cast<std::uintptr_t>(
          static_cast<const s4u::Comm&>(activity).get_data<void>());
      ends_[i] = s4u::Engine::get_clock();
    });
  }

  s4u::ClusterCallbacks hosts(const std::string& name) {
    const std::size_t zone = hosts_.size();
    hosts_.emplace_back();
    return s4u::ClusterCallbacks(
        [this, name, zone](s4u::NetZone* in, const std::vector<unsigned long>&, unsigned long) {
          s4u::Host* host = in->create_host(name + std::to_string(hosts_[zone].size()), 1e9);
          hosts_[zone].push_back(host);
          return std::pair(host->get_netpoint(),
                           static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
        });
  }

  std::unique_ptr<s4u::Engine> engine_;
  s4u::NetZone* root_ = nullptr;
  std::vector<std::vector<s4u::Host*>> hosts_;
  std::vector<double> ends_;
};

/// The ends of the messages in seconds, on our cluster and in our engine. `device` maps places.
std::vector<double> ends_here(const Cluster& c, const Traffic& traffic,
                              const std::vector<std::uint32_t>& device = {}) {
  graph::GraphBuilder builder;
  comm::Placement placement(c, builder);
  const auto flow = std::make_shared<const graph::MessageFlows>(
      2, std::vector<graph::MessageFlow>{{0, 1, 1, 1}}, std::vector<graph::Wait>{});
  for (const Message& m : traffic) {
    const auto at = [&](std::uint32_t i) { return DeviceId(device.empty() ? i : device[i]); };
    const DeviceId ends[] = {at(m.from), at(m.to)};
    builder.add(graph::Op{.name = builder.intern("message"),
                          .category = graph::Category::kCommunication,
                          .duration = Picoseconds(0),
                          .demand = placement.routes({flow}, ends)->front().demand,
                          .work = std::floor(m.bytes)});
  }
  const Result<graph::Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  std::vector<double> ends;
  for (const graph::OpTimes& op : timeline->ops)
    ends.push_back(static_cast<double>(op.end.count()) * 1e-12);
  return ends;
}

void require_equal(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    INFO("message " << i);
    REQUIRE(ours[i] == Approx(theirs[i]).epsilon(1e-9));
  }
}

double last(const std::vector<double>& ends) { return *std::max_element(ends.begin(), ends.end()); }

using Random = std::mt19937_64;

Traffic shift(std::uint32_t places, std::uint32_t by) {
  Traffic traffic;
  for (std::uint32_t i = 0; i < places; ++i) traffic.push_back({i, (i + by) % places, 1e9});
  return traffic;
}

Traffic permutation(std::uint32_t places, Random& random) {
  std::vector<std::uint32_t> to(places);
  std::iota(to.begin(), to.end(), 0U);
  std::shuffle(to.begin(), to.end(), random);
  Traffic traffic;
  for (std::uint32_t i = 0; i < places; ++i)
    if (to[i] != i) traffic.push_back({i, to[i], 1e9});
  return traffic;
}

/// Every place sends to every other; each message has 1 GB times up to 1 + `uneven`.
Traffic all_to_all(std::uint32_t places, Random& random, double uneven = 0) {
  Traffic traffic;
  for (std::uint32_t a = 0; a < places; ++a)
    for (std::uint32_t b = 0; b < places; ++b)
      if (a != b) {
        const double share = static_cast<double>(random() >> 11) * 0x1p-53;
        traffic.push_back({a, b, 1e9 * (1 + uneven * share)});
      }
  return traffic;
}

/// Shifts, permutations, and even and uneven all-to-alls end when SimGrid says.
void check_agreement(const Cluster& c, Zones::Zone zone, std::uint32_t places,
                     const std::vector<std::uint32_t>& device = {}) {
  Zones& zones = Zones::get();
  const auto check = [&](const Traffic& traffic) {
    require_equal(ends_here(c, traffic, device), zones.ends(zone, traffic));
  };
  Random random(7);
  for (std::uint32_t by = 1; by < places; by += 3) {
    INFO("shift " << by);
    check(shift(places, by));
  }
  for (int trial = 0; trial < 20; ++trial) {
    INFO("permutation " << trial);
    check(permutation(places, random));
  }
  INFO("all to all");
  check(all_to_all(places, random));
  check(all_to_all(places, random, 4));
}

FabricTemplate fabric_of(FabricKind kind) {
  return {.kind = kind, .link = test::link_type("net", kRate / 1e9, 0)};
}

Cluster of_template(const FabricTemplate& fabric, std::uint32_t nodes) {
  return test::built(
      cluster::make_cluster({.groups = {{.node = {.kind = cluster::NodeKind::kPcie,
                                                  .device = "gpu",
                                                  .devices = 1,
                                                  .link = {},
                                                  .pcie = test::link_type("pcie", 1e6, 0),
                                                  .sockets = test::link_type("socket", 1e6, 0)},
                                         .nodes = nodes}},
                             .fabric = fabric}));
}

TEST_CASE("a torus agrees with SimGrid's") {
  FabricTemplate torus = fabric_of(FabricKind::kTorus);
  torus.dimensions = {5, 3, 3};
  check_agreement(of_template(torus, 45), Zones::kTorus, 45);
}

TEST_CASE("a dragonfly agrees with SimGrid's") {
  // SimGrid joins groups a and b at router b of a and router a of b. In ours, router d of a group
  // has the link to the group d + 1 further on, and the last one has none.
  constexpr std::uint32_t kGroups = 4, kRouters = 4, kNodes = 2;
  std::vector<std::uint32_t> device;
  for (std::uint32_t group = 0; group < kGroups; ++group)
    for (std::uint32_t router = 0; router < kRouters; ++router)
      for (std::uint32_t node = 0; node < kNodes; ++node)
        device.push_back((group * kRouters + (router + kGroups - group - 1) % kGroups) * kNodes +
                         node);
  FabricTemplate dragonfly = fabric_of(FabricKind::kDragonfly);
  dragonfly.groups = kGroups;
  dragonfly.routers = kRouters;
  check_agreement(of_template(dragonfly, 32), Zones::kDragonfly, 32, device);
}

TEST_CASE("a fat tree with static routing agrees with SimGrid's") {
  check_agreement(test::StaticFatTree{.nodes = 32, .levels = 2, .down = 4, .up = 4}.build(),
                  Zones::kTree, 32);
  check_agreement(test::StaticFatTree{.nodes = 16, .levels = 3, .down = 2, .up = 2}.build(),
                  Zones::kThreeLevels, 16);
  check_agreement(test::StaticFatTree{.nodes = 32, .levels = 2, .down = 8, .up = 4}.build(),
                  Zones::kOversubscribed, 32);
}

struct Tree {
  std::string name;
  Zones::Zone zone;
  test::StaticFatTree routed;  ///< as in SimGrid

  /// The same from the template.
  Cluster build() const {
    FabricTemplate fabric = fabric_of(FabricKind::kFatTree);
    fabric.levels = routed.levels;
    fabric.radix = routed.down + routed.up;
    fabric.oversubscription = 1.0 * routed.down / routed.up;
    return of_template(fabric, routed.nodes);
  }
};

const Tree kTrees[] = {
    {"two levels", Zones::kTree, {.nodes = 32, .levels = 2, .down = 4, .up = 4}},
    {"three levels", Zones::kThreeLevels, {.nodes = 16, .levels = 3, .down = 2, .up = 2}},
    {"oversubscribed", Zones::kOversubscribed, {.nodes = 32, .levels = 2, .down = 8, .up = 4}}};

TEST_CASE("a fat tree agrees with SimGrid's where static routing does not collide") {
  Zones& zones = Zones::get();
  for (const Tree& tree : kTrees) {
    INFO(tree.name);
    const Cluster c = tree.build();
    const auto check = [&](const Traffic& traffic) {
      require_equal(ends_here(c, traffic), zones.ends(tree.zone, traffic));
    };
    // The links up of an oversubscribed leaf carry equal shares if all of its messages leave it.
    const bool full = tree.routed.down == tree.routed.up;
    for (std::uint32_t by = 1; by < tree.routed.nodes; ++by)
      if (full || by % tree.routed.down == 0) check(shift(tree.routed.nodes, by));
    Random random(7);
    check(all_to_all(tree.routed.nodes, random));
  }
}

/// The largest number of messages on one link.
std::size_t colliding(const Cluster& c, const Traffic& traffic) {
  std::vector<std::size_t> on(c.hop_count(), 0);
  for (const Message& m : traffic)
    for (const HopId hop : c.route(DeviceId(m.from), DeviceId(m.to)).hops) ++on[hop.index()];
  return *std::max_element(on.begin(), on.end());
}

TEST_CASE("static routing is slower by no more than the messages that collide") {
  Zones& zones = Zones::get();
  Random random(7);
  for (const Tree& tree : kTrees) {
    const Cluster adaptive = tree.build(), routed = tree.routed.build();
    const double least = 1e9 / kRate;
    double most = 1;
    for (int trial = 0; trial < 20; ++trial) {
      INFO(tree.name << ", trial " << trial);
      const Traffic traffic = permutation(tree.routed.nodes, random);
      const double ours = last(ends_here(adaptive, traffic)),
                   theirs = last(zones.ends(tree.zone, traffic));
      REQUIRE(ours <= theirs * (1 + 1e-9));
      REQUIRE(theirs <= static_cast<double>(colliding(routed, traffic)) * least * (1 + 1e-9));
      if (tree.routed.down == tree.routed.up) REQUIRE(ours == Approx(least).epsilon(1e-9));
      most = std::max(most, theirs / ours);
    }
    const Traffic uneven = all_to_all(tree.routed.nodes, random, 4);
    const double ours = last(ends_here(adaptive, uneven)),
                 theirs = last(zones.ends(tree.zone, uneven));
    INFO(tree.name << ": permutations up to " << most << ", uneven all-to-all " << theirs / ours);
    CHECK(most > 1.5);  // else permutations would not tell the two apart
    CHECK(ours <= theirs * (1 + 1e-9));
    CHECK(theirs <= 1.1 * ours);
  }
}

}  // namespace
}  // namespace rehearse
