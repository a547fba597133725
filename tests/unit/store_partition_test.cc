// Keys divided among workers: halos by hand and by brute force, closed forms, partitioners, streams
// of what others hold, and the step that exchanges it.
#include <cmath>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "models/job/lower.h"
#include "models/job/roofline.h"
#include "models/store/cache.h"
#include "models/store/full_graph.h"
#include "models/store/graph.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"

namespace rehearse {
namespace {

using namespace store;
using Catch::Contains;

Neighbours graph_of(const std::string& text) {
  Result<Neighbours> graph = recorded_graph(text, "graph");
  INFO((graph ? "" : to_string(graph.error())));
  REQUIRE(graph);
  return std::move(*graph);
}

const Neighbours& ring() {
  static const Neighbours graph = graph_of(test::join_lines(
      test::blocks_of(test::source_file("docs/concepts/partition.md"), "neighbours")
          .front()
          .lines));
  return graph;
}

/// A small graph that some keys are popular in, with keys that read others twice, or themselves.
Neighbours popular(std::uint32_t keys, std::uint32_t degree) {
  return Neighbours({.keys = keys, .degree = degree, .exponent = 0.8, .seed = 3});
}

/// By asking of every worker and every key whether one that it holds reads it.
std::uint64_t naive_halo(const Neighbours& graph, const Partition& partition) {
  std::set<std::pair<std::uint32_t, Key>> missing;
  for (Key key = 0; key < graph.keys(); ++key)
    for (std::uint32_t j = 0; j < graph.degree(key); ++j)
      if (partition.holder[graph.of(key, j)] != partition.holder[key])
        missing.emplace(partition.holder[key], graph.of(key, j));
  return missing.size();
}

/// The mean halo over every way to give the keys to the workers.
double mean_halo(const Neighbours& graph, std::uint32_t workers) {
  Partition partition{.workers = workers, .holder = std::vector<std::uint16_t>(graph.keys(), 0)};
  double sum = 0, count = 0;
  for (;;) {
    sum += static_cast<double>(naive_halo(graph, partition));
    ++count;
    std::size_t k = 0;
    while (k < partition.holder.size() && ++partition.holder[k] == workers)
      partition.holder[k++] = 0;
    if (k == partition.holder.size()) return sum / count;
  }
}

TEST_CASE("partition: the worked example of the page") {
  const auto block =
      test::blocks_of(test::source_file("docs/concepts/partition.md"), "holders").front();
  std::size_t checked = 0;
  for (const std::string& line : block.lines) {
    INFO(line);
    const std::size_t colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    unsigned cut = 0, edges = 0;
    double expected = 0;
    REQUIRE(std::sscanf(line.c_str() + colon, ": cut %u of %u, halo %lf", &cut, &edges,
                        &expected) == 3);
    ++checked;
    if (line.starts_with("mean")) {
      CHECK(expected_halo(readers_of(ring()), 2) == Approx(expected));
      CHECK(mean_halo(ring(), 2) == Approx(expected));
      continue;
    }
    Partition partition{.workers = 2};
    std::istringstream holders(line.substr(0, colon));
    for (std::uint16_t holder = 0; holders >> holder;) partition.holder.push_back(holder);
    const Halo halo = halo_of(ring(), partition);
    CHECK(halo.cut == cut);
    CHECK(halo.edges == edges);
    CHECK(static_cast<double>(halo.total()) == expected);
  }
  CHECK(checked == 4);
}

TEST_CASE("partition: the closed form is the mean over all partitions") {
  for (const std::uint32_t workers : {2U, 3U})
    for (const std::uint32_t degree : {1U, 3U, 6U}) {
      const Neighbours graph = popular(8, degree);
      CHECK(expected_halo(readers_of(graph), workers) ==
            Approx(mean_halo(graph, workers)).epsilon(1e-12));
    }
  // A large one is near its mean.
  Neighbours graph({.keys = 20'000, .degree = 12, .exponent = 0.7});
  graph.make_all();
  const Halo halo = halo_of(graph, partition(graph, Partitioner::kRandom, 8));
  CHECK(static_cast<double>(halo.total()) ==
        Approx(expected_halo(readers_of(graph), 8)).epsilon(0.01));
  CHECK(static_cast<double>(halo.cut) == Approx(7.0 / 8 * graph.edges()).epsilon(0.01));
}

TEST_CASE("partition: halos equal those of a search through all edges") {
  for (const Partitioner by : {Partitioner::kRandom, Partitioner::kGreedy, Partitioner::kFennel}) {
    const Neighbours graph = popular(300, 5);
    const Partition made = partition(graph, by, 7);
    const Halo halo = halo_of(graph, made);
    CHECK(halo.total() == naive_halo(graph, made));
    CHECK(halo.edges == 1500);
    std::uint64_t held = 0, reads = 0;
    for (std::uint32_t w = 0; w < 7; ++w) {
      held += halo.held[w];
      reads += halo.reads[w];
      CHECK(halo.of(w, w) == 0);
    }
    CHECK(held == 300);
    CHECK(reads == halo.edges);
  }
}

TEST_CASE("partition: streaming partitioners respect their room and find communities") {
  Neighbours graph(
      {.keys = 8'000, .degree = 10, .exponent = 0.3, .communities = 16, .inside = 0.95});
  graph.make_all();
  const auto halo = [&](Partitioner by) { return halo_of(graph, partition(graph, by, 4)); };
  const Halo random = halo(Partitioner::kRandom), greedy = halo(Partitioner::kGreedy),
             fennel = halo(Partitioner::kFennel), known = halo(Partitioner::kCommunities);
  CHECK(greedy.total() * 5 < random.total() * 4);
  CHECK(fennel.total() * 5 < random.total() * 4);
  CHECK(known.total() < fennel.total());
  // Neighbours from elsewhere alone are cut, of those 3 in 4.
  CHECK(static_cast<double>(known.cut) == Approx(0.05 * 0.75 * graph.edges()).epsilon(0.05));
  CHECK(*std::max_element(greedy.held.begin(), greedy.held.end()) == 2'000);
  CHECK(*std::max_element(fennel.held.begin(), fennel.held.end()) <= 2'200);
  for (const std::uint64_t held : known.held) CHECK(held == 2'000);
  CHECK(partition(graph, Partitioner::kGreedy, 1).holder == std::vector<std::uint16_t>(8'000, 0));
}

TEST_CASE("partition: sampled keys on other workers") {
  Neighbours graph({.keys = 4'000, .degree = 8, .exponent = 0, .seed = 9});
  const std::vector<std::uint32_t> fan_out = {5, 4};
  const Shape shape{.keys = 4'000, .batch = 50, .batches = 40, .seed = 9};
  const Partition held = partition(graph, Partitioner::kRandom, 4);
  const KeyStream remote = sampled_keys(graph, shape, fan_out, Mine{held, 2});
  REQUIRE(remote.batches() == 40);
  for (std::size_t b = 0; b < remote.batches(); ++b) {
    const auto batch = remote.batch(b);
    CHECK(std::set<Key>(batch.begin(), batch.end()).size() == batch.size());
    for (const Key key : batch) CHECK(held.holder[key] != 2);
  }
  // Of what is reached besides seeds, 3/4 lies elsewhere; the seeds are the worker's own.
  const double reached =
      static_cast<double>(sampled_keys(graph, shape, fan_out).accesses.size()) - 50 * 40;
  CHECK(static_cast<double>(remote.accesses.size()) ==
        Approx(reached * 0.75 / (1 - 50.0 / 4'000)).epsilon(0.02));
  // One worker needs nothing.
  const Partition alone = partition(graph, Partitioner::kRandom, 1);
  CHECK(sampled_keys(graph, shape, fan_out, Mine{alone, 0}).accesses.empty());
}

TEST_CASE("partition: a step with all keys, by hand") {
  const auto step_us = [](const std::vector<std::uint16_t>& holder, const GraphNetwork& network) {
    const Halo halo = halo_of(ring(), {.workers = 2, .holder = holder});
    program::Program job = full_graph_step(halo, network);
    double sent = 0;
    for (const program::RankProgram& program : job.programs)
      for (const program::ProgramOp& op : program.ops)
        if (op.task == program::Task::kSend) sent += op.bytes.b();
    CHECK(sent == exchanged(halo, network).b());
    const auto cluster = cluster::parse_cluster(
        "cluster: {device: h100_sxm5_80, devices_per_node: 2, nodes: 1, intra_node: "
        "{kind: nvswitch, rate: 100 GB/s, latency: 2 us}}\n",
        "star");
    REQUIRE(cluster);
    job::set_durations(job, {.peak = FlopRate::tflop_per_s(1), .memory = ByteRate::gb_per_s(1000)});
    const Result<job::LoweredJob> lowered = job::lower(job, *cluster, {});
    INFO((lowered ? "" : to_string(lowered.error())));
    REQUIRE(lowered);
    const Result<graph::Timeline> timeline = engine::run(lowered->graph);
    REQUIRE(timeline);
    return timeline->makespan().seconds().us();
  };
  const GraphNetwork one{.widths = {250'000, 1}};
  CHECK(step_us({0, 0, 0, 1, 1, 1}, one) == Approx(51).epsilon(1e-4));
  // Three keys each way: 10 us more.
  CHECK(step_us({0, 1, 0, 1, 0, 1}, one) == Approx(61).epsilon(1e-4));
  // Two layers of 250,000: 22 + 9 us each, and backward those of the second again, 22 + 9; products
  // of 2 × 3 × 250,000² FLOPs take 375 ms each, of the first two and of the second three.
  const double products = 2.0 * 3 * 250'000 * 250'000 * 1e-6;  // us
  CHECK(step_us({0, 0, 0, 1, 1, 1}, {.widths = {250'000, 250'000, 1}}) ==
        Approx(2 * products + 3 * 31 + 3 + 6 + 2 * (2 + (250'000.0 * 250'001 * 2) / 1e5))
            .epsilon(1e-4));
}

TEST_CASE("partition: one worker sends nothing") {
  const Halo halo = halo_of(ring(), partition(ring(), Partitioner::kFennel, 1));
  CHECK(halo.total() == 0);
  const program::Program job = full_graph_step(halo, {.widths = {3, 2, 1}});
  REQUIRE(job.ranks() == 1);
  CHECK(job.groups.empty());
  for (const program::ProgramOp& op : job.programs[0].ops)
    CHECK(op.task == program::Task::kCompute);
}

TEST_CASE("partition: files of graphs, and their errors") {
  const Neighbours graph = graph_of("3 1\n\n0 1 2\n3 0 3\n");
  CHECK(graph.keys() == 4);
  CHECK(graph.edges() == 5);
  CHECK(graph.degree(0) == 2);
  CHECK(graph.degree(1) == 0);
  REQUIRE(graph.degree(3) == 3);
  CHECK(graph.of(3, 0) == 1);
  CHECK(graph.of(3, 2) == 3);
  const auto error_of = [](const std::string& text) {
    const Result<Neighbours> read = recorded_graph(text, "graph.txt");
    return read ? "no error" : to_string(read.error());
  };
  CHECK_THAT(error_of("0 1\n1 two\n"), Contains("graph.txt:2") && Contains("'two' is not a key"));
  CHECK_THAT(error_of("0 -1\n"), Contains("'-1' is not a key"));
  CHECK_THAT(error_of("0 99999999\n"), Contains("keys below 4e+07"));
  CHECK_THAT(error_of("7\n"), Contains("holds no neighbours"));
  // A key that reads nothing ends a walk.
  CHECK(sampled_keys(graph_of("0 1\n"), {.keys = 2, .batch = 2, .batches = 1},
                     std::vector<std::uint32_t>{3, 3})
            .accesses.size() == 2);
}

}  // namespace
}  // namespace rehearse
