// ASTRA-sim's network and system files, and collectives along the dimensions of a network.
#include <fstream>

#include <catch2/catch.hpp>

#include "models/job/lower.h"
#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/chakra_job.h"
#include "sim/base/file.h"
#include "sim/cluster/astra_network.h"
#include "sim/engine/engine.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

using test::ChakraOp;
using test::kCollective;

cluster::AstraNetwork network(const std::string& text) {
  Result<cluster::AstraNetwork> read = cluster::parse_astra_network(text, "network.yml");
  INFO((read ? "" : to_string(read.error())));
  REQUIRE(read);
  return std::move(*read);
}
std::string network_error(const std::string& text) {
  const auto read = cluster::parse_astra_network(text, "network.yml");
  return read ? "no error" : to_string(read.error());
}
std::string system_error(const std::string& text) {
  const auto read = ingest::parse_astra_system(text, "system.json");
  return read ? "no error" : to_string(read.error());
}

ChakraOp all_reduce(std::uint64_t id, std::int64_t bytes, std::vector<bool> involved) {
  return {.id = id,
          .name = "sum",
          .type = kCollective,
          .numbers = {{"comm_type", 0}, {"comm_size", bytes}},
          .involved = std::move(involved)};
}

std::vector<std::uint32_t> members(const program::Program& job, std::uint32_t rank,
                                   std::uint32_t group) {
  std::vector<std::uint32_t> ranks;
  for (const RankId member : job.groups[job.groups_of[rank][group]].members)
    ranks.push_back(member.index());
  return ranks;
}

const char* const kExample = "examples/astra-sim/all_reduce.et";

/// 1 MiB over both dimensions.
std::string example_file() { return test::chakra_file({all_reduce(0, 1 << 20, {true, true})}); }

/// How long the job takes by messages.
Seconds time_of(const std::string& file, const cluster::AstraNetwork& on,
                const ingest::AstraSystem& system) {
  const auto ranks = static_cast<std::uint32_t>(on.cluster.devices().size());
  const auto prefix = test::write_chakra(std::vector<std::string>(ranks, file));
  const auto job = ingest::read_chakra_job(
      {.prefix = prefix, .dimensions = on.dimensions, .astra = system.collectives});
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  const auto lowered =
      job::lower(job->job, on.cluster, {.message_overhead = system.endpoint_delay});
  REQUIRE(lowered);
  const auto timeline = engine::run(lowered->graph);
  REQUIRE(timeline);
  return timeline->makespan().seconds();
}

}  // namespace

TEST_CASE("each block of ASTRA-sim's network becomes its links") {
  // Along dimension 0 rings 0-1-2, 3-4-5; along dimension 1 pairs by a switch each.
  const cluster::AstraNetwork n = network(
      "topology: [Ring, Switch]\nnpus_count: [3, 2]\nbandwidth: [10, 1]\nlatency: [100, 7]\n");
  CHECK(n.dimensions == std::vector<std::uint32_t>{3, 2});
  CHECK(n.cluster.devices().size() == 6);
  CHECK(n.cluster.links().size() == 6 + 6);  // 3 per ring, one per NPU to its switch
  const cluster::Route next = n.cluster.route(DeviceId(0), DeviceId(2));
  CHECK(next.hops.size() == 1);
  CHECK(next.path.latency.us() * 1e3 == Approx(100));
  CHECK(next.path.rate.bytes_per_s() == Approx(10 * 0x1p30));
  const cluster::Route up = n.cluster.route(DeviceId(1), DeviceId(4));
  CHECK(up.hops.size() == 2);
  CHECK(up.path.latency.us() * 1e3 == Approx(14));
  CHECK(up.path.rate.bytes_per_s() == Approx(0x1p30));

  const cluster::AstraNetwork full =
      network("topology: [FullyConnected]\nnpus_count: [5]\nbandwidth: [10]\nlatency: [0]\n");
  CHECK(full.cluster.links().size() == 10);
  CHECK(network("topology: [Ring]\nnpus_count: [2]\nbandwidth: [1]\nlatency: [1]\n")
            .cluster.links()
            .size() == 1);
}

TEST_CASE("a network file that is wrong is refused, each mistake with its line") {
  CHECK(network_error("topology: [Torus]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n")
            .find("network.yml:1:11: topology: 'Torus' is not supported; Ring, FullyConnected or "
                  "Switch") == 0);
  CHECK(network_error("topology: [Ring]\nnpus_count: [4, 2]\nbandwidth: [1]\nlatency: [1]\n") ==
        "network.yml:2:13: npus_count: has 2 values for 1 dimensions; one for each topology");
  CHECK(network_error("topology: [Ring]\nnpus_count: []\nbandwidth: [1]\nlatency: [1]\n") ==
        "network.yml:2:13: npus_count: has 0 values for 1 dimensions; one for each topology");
  CHECK(network_error("topology: [Ring]\nbandwidth: [1]\nlatency: [1]\n").find("npus_count") !=
        std::string::npos);
  CHECK(network_error("topology: [Ring]\nnpus_count: [1]\nbandwidth: [0]\nlatency: [-1]\n") ==
        "network.yml:2:13: npus_count: 1 is out of range; 2 to 131072\n"
        "network.yml:3:12: bandwidth: 0 is out of range; 1e-06 to 1e+09\n"
        "network.yml:4:10: latency: -1 is out of range; 0 to 1e+09");
  CHECK(network_error("topology: [Switch, Switch]\nnpus_count: [1000, 1000]\nbandwidth: [1, 1]\n"
                      "latency: [1, 1]\n")
            .find("1000000 NPUs in all; up to 131072") != std::string::npos);
  CHECK(network_error("topology: [FullyConnected]\nnpus_count: [10000]\nbandwidth: [1]\n"
                      "latency: [1]\n")
            .find("links in all") != std::string::npos);
  CHECK(network_error("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"
                      "topology-name: Hierarchical\n")
            .find("topology-name: unknown key") != std::string::npos);
}

TEST_CASE("a system file gives splits, delay, algorithms and a roofline") {
  const auto read = ingest::parse_astra_system(
      R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": 4,
          "active-chunks-per-dimension": 1, "all-reduce-implementation": ["oneRing"],
          "all-to-all-implementation": ["oneDirect"], "collective-optimization": "localBWAware",
          "peak-perf": 312, "local-mem-bw": 2039, "roofline-enabled": 1, "boost-mode": 0})",
      "system.json");
  INFO((read ? "" : to_string(read.error())));
  REQUIRE(read);
  CHECK(read->last_first);
  CHECK(read->endpoint_delay.us() * 1e3 == Approx(10));
  CHECK(read->collectives.splits == 4);
  CHECK(read->collectives.scatters_first);
  CHECK(read->collectives.one_ring);
  CHECK(read->reduction == "ring");
  CHECK(read->exchange == "linear");
  CHECK(read->peak->tflop_per_s() == Approx(312));
  CHECK(read->memory->bytes_per_s() == Approx(2039e9));
}

TEST_CASE("unsupported keys of a system file are refused by name") {
  const std::string ends = R"(, "endpoint-delay": 1, "preferred-dataset-splits": 1})";
  const auto says = [&](const std::string& begin, const std::string& what) {
    const std::string error = system_error(begin + ends);
    INFO(error);
    CHECK(error.find(what) != std::string::npos);
    CHECK(error.find("system.json:1:") == 0);
  };
  says(R"({"all-reduce-implementation": ["direct"])",
       "all-reduce-implementation: 'direct' is not supported; ring, oneRing, halvingDoubling");
  says(R"({"all-gather-implementation": ["ring", "halvingDoubling"])",
       "other algorithms along other dimensions are not supported");
  says(R"({"active-chunks-per-dimension": 2)", "active-chunks-per-dimension: '2' is not supported");
  says(R"({"inter-dimension-scheduling": "themis")", "'themis' is not supported; baseline");
  says(R"({"collective-optimization": "fast")", "unknown");
  says(R"({"roofline-enabled": 1, "local-mem-bw": 5)", "peak-perf: is missing");
  says(R"({"L": 500)", "L: unknown key");
  CHECK(system_error("{}").find("endpoint-delay: is missing") != std::string::npos);
}

TEST_CASE("involved_dim selects the dimensions of a collective") {
  const std::string file = test::chakra_file({all_reduce(0, 64, {true, false, false}),
                                              all_reduce(1, 64, {false, true, true}),
                                              all_reduce(2, 64, {true, true, true})});
  const auto prefix = test::write_chakra(std::vector<std::string>(12, file));
  const auto job = ingest::read_chakra_job({.prefix = prefix, .dimensions = {2, 3, 2}});
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  // Rank 9 = 1 + 2 (1 + 3 × 1): i0 = 1, i1 = 1, i2 = 1.
  CHECK(members(job->job, 9, 0) == std::vector<std::uint32_t>{8, 9});
  CHECK(members(job->job, 9, 1) == std::vector<std::uint32_t>{1, 3, 5, 7, 9, 11});
  CHECK(members(job->job, 9, 2).size() == 12);
  CHECK(job->job.groups.size() == 6 + 2 + 1);
  CHECK(job->job.programs.size() == 1);
}

TEST_CASE("involved_dim needs a network with its dimensions") {
  const std::string file = test::chakra_file({all_reduce(0, 64, {true, false})});
  const auto prefix = test::write_chakra(std::vector<std::string>(8, file));
  const auto without = ingest::read_chakra_job({.prefix = prefix});
  REQUIRE_FALSE(without);
  CHECK(to_string(without.error())
            .find("involved_dim names 2 dimensions of a network of 0; a cluster with these "
                  "dimensions, or pg_name and --comm-groups") != std::string::npos);
  CHECK_FALSE(ingest::read_chakra_job({.prefix = prefix, .dimensions = {2, 2, 2}}));
  const auto odd = ingest::read_chakra_job({.prefix = prefix, .dimensions = {4, 3}});
  REQUIRE_FALSE(odd);
  CHECK(to_string(odd.error()).find("8 ranks on a network of 12 NPUs") != std::string::npos);
  // Further dimensions than the network has play no part.
  CHECK(ingest::read_chakra_job({.prefix = prefix, .dimensions = {8}}));
}

TEST_CASE("an all_reduce over two dimensions takes the time of its phases, by hand") {
  const auto path = test::source_file(kExample);
  if (std::getenv("REHEARSE_UPDATE_GOLDEN"))
    std::ofstream(path, std::ios::binary) << example_file();
  const Result<std::string> stored = read_file(path);
  REQUIRE(stored);
  CHECK(*stored == example_file());
  const auto on = cluster::load_astra_network(test::source_file("examples/astra-sim/network.yml"));
  auto system = ingest::load_astra_system(test::source_file("examples/astra-sim/system.json"));
  REQUIRE(on);
  REQUIRE(system);
  const double delay = 10e-9, quarter = 0x1p18;  // bytes
  // Rings of four: three steps of a quarter, there and back. Pairs by a switch: two links, and two
  // steps of half of that quarter.
  const double ring = 3 * (500e-9 + delay + quarter / (50 * 0x1p30));
  const double pair = 2 * (2000e-9 + delay + quarter / 2 / (25 * 0x1p30));
  CHECK(time_of(*stored, *on, *system).s() == Approx(2 * ring + pair).epsilon(1e-6));

  // baseline: the whole of it along each dimension.
  system->collectives.scatters_first = false;
  const double whole_pair = 2 * (2000e-9 + delay + 0x1p19 / (25 * 0x1p30));
  CHECK(time_of(*stored, *on, *system).s() == Approx(2 * ring + whole_pair).epsilon(1e-6));

  // In four parts the dimensions work on different ones at a time: the parts' startups add up on
  // the busier dimension, and the other shows once.
  system->collectives = {.splits = 4, .scatters_first = true};
  const double ring_part = 3 * (500e-9 + delay + quarter / 4 / (50 * 0x1p30));
  const double pair_part = 2 * (2000e-9 + delay + quarter / 8 / (25 * 0x1p30));
  const double time = time_of(*stored, *on, *system).s();
  CHECK(time >= 4 * 2 * ring_part - 1e-10);
  CHECK(time < 4 * (2 * ring_part + pair_part));
  CHECK(time >= ring_part + 4 * pair_part + ring_part - 1e-12);
}

TEST_CASE("phases carry the same bytes as ASTRA-sim's") {
  // all_gather: from the last dimension back, growing; reduce_scatter: shrinking.
  const auto op = [](int type) {
    ChakraOp one = all_reduce(0, 1200, {true, true});
    one.numbers[0].second = type;
    return test::chakra_file({one});
  };
  const auto shares = [&](int type) {
    const auto prefix = test::write_chakra(std::vector<std::string>(6, op(type)));
    const auto job = ingest::read_chakra_job(
        {.prefix = prefix, .dimensions = {2, 3}, .astra = ingest::AstraCollectives{.splits = 1}});
    REQUIRE(job);
    std::vector<std::pair<std::size_t, double>> phases;  // members and bytes
    for (const program::ProgramOp& each : job->job.programs.front().ops)
      phases.emplace_back(job->job.groups[job->job.groups_of[0][each.group]].members.size(),
                          each.bytes.b());
    return phases;
  };
  using Phases = std::vector<std::pair<std::size_t, double>>;
  CHECK(shares(7) == Phases{{2, 1200}, {3, 600}});   // reduce_scatter
  CHECK(shares(2) == Phases{{3, 3600}, {2, 7200}});  // all_gather: of the whole group
  CHECK(shares(6) == Phases{{2, 1200}, {3, 1200}});  // all_to_all
  CHECK(shares(0) == Phases{{2, 1200}, {3, 1200}});  // all_reduce, baseline
}

}  // namespace rehearse
