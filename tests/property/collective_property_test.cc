// One price of a collective: the closed form is the time of the messages that a run sends, for
// every algorithm, size and number of ranks, wherever nothing contends.
#include <cmath>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/comm/placement.h"
#include "models/job/group_network.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::job {
namespace {

cluster::Cluster nodes_of(const char* device, std::uint32_t nodes, const char* more = "") {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: {}, devices_per_node: 8, nodes: {}{}}}\n", device, nodes,
                  more),
      "nodes");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return *cluster;
}

/// On the devices of the group, alone on the cluster.
class Alone {
 public:
  Alone(const cluster::Cluster& cluster, CollectiveKind kind, std::vector<DeviceId> devices,
        const Rules& rules)
      : cluster_(cluster), kind_(kind), devices_(std::move(devices)), schedules_(cluster, rules) {
    Result<GroupSchedule> group = schedules_.of(kind_, devices_);
    if (group) group_ = std::move(*group);
  }

  bool has_price() const { return group_.has_value(); }
  bool calibrated() const { return group_ && group_->calibrated; }
  Seconds closed(Bytes size) const { return group_->price(size).value; }
  Algorithm algorithm(Bytes size) const { return group_->links_for(size).algorithm; }
  double steps(Bytes size) const {
    return comm::steps_in(group_->links_for(size).schedule, comm::chunks_of(size)).count;
  }
  std::uint64_t messages(Bytes size) {
    return schedules_.messages(*group_, devices_, size)->flows->messages();
  }

  Seconds by_messages(Bytes size, bool simgrid = false) {
    const Result<comm::Messages> messages = schedules_.messages(*group_, devices_, size);
    REQUIRE(messages);
    graph::GraphBuilder builder;
    comm::Placement placement(cluster_, builder);
    const auto routes = placement.routes(*messages, devices_);
    std::vector<OpId> members;
    for (std::size_t m = 0; m < devices_.size(); ++m)
      members.push_back(builder.add(
          graph::Op{.name = builder.intern("member"),
                    .category = graph::Category::kCommunication,
                    .duration = messages->phases ? Picoseconds::from(messages->phases->launch)
                                                 : Picoseconds(0)}));
    builder.add(graph::Transfer{messages->flows, routes, members, size.b()});
    const Result<graph::Graph> graph = std::move(builder).build();
    REQUIRE(graph);
    const Result<graph::Timeline> timeline =
        simgrid ? engine::run_on_simgrid(*graph) : engine::run(*graph);
    REQUIRE(timeline);
    return timeline->makespan().seconds();
  }

 private:
  const cluster::Cluster& cluster_;
  CollectiveKind kind_;
  std::vector<DeviceId> devices_;
  Schedules schedules_;
  std::optional<GroupSchedule> group_;
};

std::vector<DeviceId> devices(std::uint32_t count, std::uint32_t every = 1) {
  std::vector<DeviceId> devices;
  for (std::uint32_t i = 0; i < count; ++i) devices.emplace_back(i * every);
  return devices;
}

constexpr CollectiveKind kClosedKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kBroadcast, CollectiveKind::kReduce,
    CollectiveKind::kBarrier};

/// From 1 B to 4 GiB.
std::vector<Bytes> sizes(int by) {
  std::vector<Bytes> sizes;
  for (int power = 0; power <= 32; power += by) sizes.push_back(Bytes::b(std::exp2(power)));
  return sizes;
}

struct Compared {
  std::size_t pairs = 0;
  std::set<Algorithm> algorithms = {};
};

/// Every kind and size that a calibration covers.
void compare(const cluster::Cluster& cluster, const std::vector<DeviceId>& group, int by,
             std::uint64_t most_messages, Compared& compared,
             std::optional<Algorithm> algorithm = {}) {
  const Rules rules{.algorithms = algorithm ? wherever_possible(*algorithm) : Algorithms(),
                    .calibrated = true};
  for (const CollectiveKind kind : kClosedKinds) {
    Alone alone(cluster, kind, group, rules);
    if (!alone.calibrated()) continue;
    for (const Bytes size : sizes(by)) {
      if (alone.messages(size) > most_messages) continue;
      INFO(fmt::format("{} of {} among {} on {} by {}", to_string(kind), to_string(size),
                       group.size(), cluster.devices().front().model,
                       to_string(alone.algorithm(size))));
      const double closed = alone.closed(size).s(), messages = alone.by_messages(size).s();
      // Instants are whole picoseconds: a message of the longest chain rounds twice.
      CHECK(messages == Approx(closed).epsilon(1e-6).margin(1e-12 * alone.steps(size)));
      ++compared.pairs;
      compared.algorithms.insert(alone.algorithm(size));
    }
  }
}

TEST_CASE("messages take the time of the closed form: devices of one node") {
  Compared compared;
  for (const char* device : {"h100_sxm5_80", "a100_sxm4_80", "b200_sxm_180", "v100_sxm2_16"}) {
    const cluster::Cluster node = nodes_of(device, 1);
    for (std::uint32_t ranks = 2; ranks <= 8; ++ranks)
      if (ranks % 2 == 0 || std::string_view(device) != "v100_sxm2_16")
        compare(node, devices(ranks), 2, 100'000, compared);
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls})
      if (std::string_view(device) != "v100_sxm2_16")
        compare(node, devices(8), 4, 100'000, compared, algorithm);
  }
  CHECK(compared.pairs > 2000);
  for (const Algorithm algorithm :
       {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls, Algorithm::kPairwise})
    CHECK(compared.algorithms.count(algorithm) == 1);
}

TEST_CASE("messages take what the closed form says: 16 to 1,024 ranks on several nodes") {
  Compared compared;
  for (const std::uint32_t nodes : {2U, 3U, 16U, 128U}) {
    const cluster::Cluster cluster = nodes_of("h100_sxm5_80", nodes);
    const int by = nodes > 16 ? 10 : 4;
    compare(cluster, devices(nodes * 8), by, 600'000, compared);
    compare(cluster, devices(nodes, 8), by, 600'000, compared);
    if (nodes > 16) continue;
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical,
                                      Algorithm::kTwoDimensional, Algorithm::kLinear})
      compare(cluster, devices(nodes * 8), 8, 600'000, compared, algorithm);
  }
  // On EFA, also for groups that have a part of each node.
  const cluster::Cluster efa =
      nodes_of("h100_sxm5_80", 4, ", inter_node: {links: 32, rate: 100 Gbit/s, latency: 15 us}");
  for (const std::uint32_t every : {1U, 2U, 8U})
    compare(efa, devices(32 / every, every), 4, 600'000, compared);
  CHECK(compared.pairs > 200);
  for (const Algorithm algorithm :
       {Algorithm::kRing, Algorithm::kTree, Algorithm::kPat, Algorithm::kPairwise,
        Algorithm::kHierarchical, Algorithm::kTwoDimensional})
    CHECK(compared.algorithms.count(algorithm) == 1);
}

TEST_CASE("messages without a calibration occupy the NIC in both forms") {
  // A NIC for each device, so that no collective is in its own way.
  const cluster::Cluster cluster =
      nodes_of("a100_sxm4_80", 4,
               ", inter_node: {kind: switch, links: 8, message_cost: 5 us, start_up: 6 us, "
               "half_rate_size: 64 KiB}");
  struct Case {
    CollectiveKind kind;
    Algorithm algorithm;
    std::uint32_t every;  // device of the cluster is a member
  };
  const Case cases[] = {{CollectiveKind::kAllReduce, Algorithm::kRing, 8},
                        {CollectiveKind::kAllReduce, Algorithm::kHalvingDoubling, 8},
                        {CollectiveKind::kAllReduce, Algorithm::kHierarchical, 1},
                        {CollectiveKind::kAllGather, Algorithm::kRing, 8},
                        {CollectiveKind::kBroadcast, Algorithm::kRing, 8},
                        {CollectiveKind::kAllToAll, Algorithm::kPairwise, 8},
                        {CollectiveKind::kAllToAll, Algorithm::kLinear, 8},
                        {CollectiveKind::kAllToAll, Algorithm::kTwoDimensional, 1},
                        {CollectiveKind::kBarrier, Algorithm::kRing, 8}};
  for (const Case& c : cases) {
    const Rules rules{.algorithms = wherever_possible(c.algorithm)};
    Alone alone(cluster, c.kind, devices(32 / c.every, c.every), rules);
    REQUIRE(alone.has_price());
    for (const Bytes size : {Bytes::b(1), Bytes::kib(64), Bytes::mib(1), Bytes::gib(1)}) {
      INFO(fmt::format("{} {} of {}", to_string(c.algorithm), to_string(c.kind), to_string(size)));
      CHECK(alone.by_messages(size).s() ==
            Approx(alone.closed(size).s()).epsilon(1e-6).margin(1e-10));
    }
  }
  // A message of 1 B: 1 us of the network, 2 us of PCIe, 6 + 5 us, and 64 KiB / 24.2 GB/s.
  const Rules linear{.algorithms = wherever_possible(Algorithm::kLinear)};
  Alone pair(cluster, CollectiveKind::kAllToAll, devices(2, 8), linear);
  CHECK(pair.closed(Bytes::b(1)).us() == Approx(1 + 4 * 0.5 + 11 + 2.708).epsilon(0.1));
}

TEST_CASE("collectives in a mesh use all links that their rings or messages can use at once") {
  const auto cluster = cluster::parse_cluster(
      "cluster: {device: mi300x, devices_per_node: 8, intra_node: {kind: mesh, rate: 50 GB/s, "
      "latency: 2 us}}\n",
      "mesh");
  REQUIRE(cluster);
  // Rings that share no link: 7 of 8 ranks by Tillson's theorem (J. Comb. Theory B 29, 1980), and
  // none with every link of 4 and of 6 ranks. A ring of n moves 2 (n - 1) / n of its part.
  const double rings[] = {0, 0, 1, 2, 2, 4, 4, 6, 7};
  for (std::uint32_t n = 2; n <= 8; ++n)
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
      Alone alone(*cluster, kind, devices(n), {});
      REQUIRE(alone.has_price());
      INFO(to_string(kind) << " of " << n);
      for (const Bytes size : {Bytes::b(1), Bytes::mib(1), Bytes::gib(1)})
        CHECK(alone.by_messages(size).s() ==
              Approx(alone.closed(size).s()).epsilon(1e-6).margin(1e-10));
      const double moved = kind == CollectiveKind::kAllReduce   ? 2 * (n - 1.0) / n / rings[n]
                           : kind == CollectiveKind::kAllGather ? (n - 1.0) / n / rings[n]
                                                                : 1.0 / n;
      CHECK(alone.closed(Bytes::gb(100)).s() == Approx(moved * 100 / 50).epsilon(1e-3));
    }
}

TEST_CASE("SimGrid carries the same phases") {
  if (!engine::check_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  const cluster::Cluster node = nodes_of("h100_sxm5_80", 1), two = nodes_of("h100_sxm5_80", 2);
  const Rules rules{.calibrated = true};
  for (const cluster::Cluster* cluster : {&node, &two})
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
      Alone alone(*cluster, kind, devices(static_cast<std::uint32_t>(cluster->devices().size())),
                  rules);
      for (const Bytes size : {Bytes::kib(8), Bytes::mib(1), Bytes::mib(256)}) {
        INFO(to_string(kind) << " of " << to_string(size));
        CHECK(alone.by_messages(size, true).s() ==
              Approx(alone.by_messages(size).s()).epsilon(1e-6));
      }
    }
}

}  // namespace
}  // namespace rehearse::job
