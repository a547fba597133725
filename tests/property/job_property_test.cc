// Properties of jobs on clusters. A failure prints the seed.

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/job/concurrent_groups.h"
#include "models/job/lower.h"
#include "models/job/program_ops.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "tests/bench/iteration.h"
#include "tests/support/makespan.h"
#include "tests/support/random.h"
#include "tests/support/share_received.h"

namespace rehearse::job {
namespace {

using program::Program;
using program::ProgramOp;
using program::RankProgram;
using program::Task;
using test::between;
using test::makespan;
using test::Random;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast};

/// Ranks that all do the same: compute, memory and host ops, and collectives of the ranks of a node
/// and of those across nodes.
Program random_job(Random& random, std::uint32_t per_node, std::uint32_t nodes, bool broadcasts) {
  Program job;
  RankProgram program;
  const NameId name = job.names.intern("op");
  for (std::uint32_t i = between(random, 1, 40); i > 0; --i) {
    ProgramOp op{.name = name, .task = Task::kCompute};
    const std::uint32_t what = between(random, 0, 9);
    if (what < 5) {
      op.task = what < 3 ? Task::kCompute : what == 3 ? Task::kMemory : Task::kHost;
      op.duration = Picoseconds(between(random, 0, 50'000'000));
    } else {
      op.task = Task::kCollective;
      op.collective = kKinds[between(random, 0, broadcasts ? 4 : 3)];
      op.bytes = Bytes::b(between(random, 0, 1'000'000));
      op.group = between(random, 0, 1);
    }
    const auto here = static_cast<std::uint32_t>(program.ops.size());
    for (std::uint32_t before = here > 6 ? here - 6 : 0; before < here; ++before)
      if (between(random, 0, 3) == 0) program.dependencies.push_back(before);
    program.ops.push_back(op);
    program.first_dependency.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
  }
  job.programs.push_back(std::move(program));
  for (std::uint32_t n = 0; n < nodes; ++n) {
    Program::Group& group = job.groups.emplace_back(Program::Group{fmt::format("node[{}]", n), {}});
    for (std::uint32_t d = 0; d < per_node; ++d) group.members.push_back(RankId(n * per_node + d));
  }
  for (std::uint32_t d = 0; d < per_node; ++d) {
    Program::Group& group =
        job.groups.emplace_back(Program::Group{fmt::format("across[{}]", d), {}});
    for (std::uint32_t n = 0; n < nodes; ++n) group.members.push_back(RankId(n * per_node + d));
  }
  for (std::uint32_t r = 0; r < per_node * nodes; ++r) {
    job.program_of.push_back(0);
    job.groups_of.push_back({r / per_node, nodes + r % per_node});
  }
  return job;
}

cluster::Cluster cluster_of(std::uint32_t per_node, std::uint32_t nodes) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: {}, nodes: {}, inter_node: "
                  "{{kind: switch, links: {}, rate: 50 GB/s, latency: 5 us}}}}\n",
                  per_node, nodes, per_node),
      "cluster");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return *cluster;
}

TEST_CASE(
    "jobs: one rank for all gives what all ranks give, to the picosecond, and no less by "
    "message than by closed form") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::uint32_t per_node = between(random, 1, 4), nodes = between(random, 1, 4);
    const bool broadcasts = seed % 3 == 0;
    const Program job = random_job(random, per_node, nodes, broadcasts);
    const cluster::Cluster cluster = cluster_of(per_node, nodes);
    Rules rules{.fidelity = Fidelity::kClosed, .parts = between(random, 1, 3)};
    if (between(random, 0, 1) == 1) rules.message_overhead = Seconds::us(1);
    const auto folded = fold(job, cluster, rules);
    REQUIRE(folded);
    REQUIRE(*folded);
    const auto all = lower(job, cluster, rules);
    REQUIRE(all);
    const Picoseconds closed = makespan(*all);
    CHECK(makespan(**folded) == closed);
    const auto one = engine::run((*folded)->graph), each = engine::run(all->graph);
    const program::Occupancy first = mean(occupancy(job, **folded, *one));
    for (const RankRange& ranks : occupancy(job, *all, *each)) CHECK(ranks.occupancy == first);
    const Seconds parts = first.compute + first.exposed_communication + first.memory +
                          first.bubble + first.host + first.input + first.profiler + first.idle;
    CHECK(parts.s() == Approx(closed.seconds().s()));
    CHECK(first.total == closed.seconds());
    CHECK(path_parts(job, *all, *each, {}, {}).total() == closed);

    rules.fidelity = Fidelity::kMessage;
    const auto messages = lower(job, cluster, rules);
    REQUIRE(messages);
    // Every message rounds to a picosecond. The root of a broadcast is done before the others, and
    // goes on: that is quicker than the closed form, in which all end together.
    if (!broadcasts)
      CHECK(makespan(*messages).count() >=
            closed.count() - static_cast<std::int64_t>(messages->messages) - 1);
    CHECK(messages->bytes_sent == all->bytes_sent);
  }
}

TEST_CASE("jobs: one rank for all, with interference and calibrated collectives") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::uint32_t per_node = between(random, 1, 4), nodes = between(random, 1, 4);
    const Program job = random_job(random, per_node, nodes, false);
    const cluster::Cluster cluster = cluster_of(per_node, nodes);
    Rules rules{.fidelity = Fidelity::kClosed,
                .slowdown = 1 + 0.1 * between(random, 1, 9),
                .calibrated = seed % 2 == 0};
    const auto folded = fold(job, cluster, rules);
    REQUIRE(folded);
    REQUIRE(*folded);
    const auto all = lower(job, cluster, rules);
    REQUIRE(all);
    CHECK(makespan(**folded) == makespan(*all));
    CHECK((*folded)->provenance == all->provenance);
    const Picoseconds value = makespan(*all);
    rules.slowdown = 1;
    CHECK(makespan(*lower(job, cluster, rules)).count() <= value.count() + 1000);
  }
}

TEST_CASE("jobs: every transfer delivers all bytes that it sends") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::uint32_t per_node = between(random, 2, 4), nodes = between(random, 1, 3);
    const Program job = random_job(random, per_node, nodes, true);
    const auto lowered = lower(job, cluster_of(per_node, nodes), {});
    REQUIRE(lowered);
    double sent = 0, received = 0;
    for (const graph::Transfer& t : lowered->graph.transfers())
      for (std::uint32_t m = 0; m < t.flows->members(); ++m) {
        sent += t.flows->share_sent(m) * t.size;
        received += test::share_received(*t.flows, m) * t.size;
      }
    CHECK(sent == Approx(received));
    CHECK(lowered->bytes_sent == Approx(sent));
  }
}

TEST_CASE(
    "jobs: a training iteration folds to what its ranks do, and a straggler makes it longer") {
  const bench::Iteration small{.layers = 3, .tensor = 4, .data = 3};
  const Program job = bench::make_job(small);
  const cluster::Cluster cluster = bench::make_iteration_cluster(small);
  const Rules rules{.fidelity = Fidelity::kClosed};
  const auto folded = fold(job, cluster, rules);
  REQUIRE(folded);
  REQUIRE(*folded);
  const auto all = lower(job, cluster, rules);
  REQUIRE(all);
  CHECK(makespan(**folded) == makespan(*all));
  CHECK(makespan(*lower(job, cluster, {})) >= makespan(*all));
  const Program uneven = bench::make_job({.layers = 3, .tensor = 4, .data = 3, .jitter = 0.1});
  CHECK(uneven.programs.size() == 12);
  CHECK_FALSE(*fold(uneven, cluster, rules));
  CHECK(makespan(*lower(uneven, cluster, rules)) > makespan(*all));
}

/// Programs of one collective or send each, many alike but for what they compute; ranks in groups
/// and with peers at random. Never run: only who is alike and who meets counts.
Program random_meetings(Random& random) {
  Program job;
  const NameId name = job.names.intern("op");
  for (std::uint32_t p = between(random, 2, 12); p > 0; --p) {
    RankProgram program;
    program.ops.push_back(
        {.name = name, .task = Task::kCompute, .duration = Picoseconds(between(random, 0, 9))});
    program.ops.push_back({.name = name,
                           .task = between(random, 0, 2) > 0 ? Task::kCollective : Task::kSend,
                           .bytes = Bytes::b(between(random, 1, 2))});
    program.first_dependency = {0, 0, 0};
    if (between(random, 0, 2) == 0) {
      program.first_dependency.back() = 1;
      program.dependencies.push_back(0);
    }
    job.programs.push_back(std::move(program));
  }
  const auto programs = static_cast<std::uint32_t>(job.programs.size());
  const std::uint32_t ranks = between(random, programs, 2 * programs);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    job.program_of.push_back(r < programs ? r : between(random, 0, programs - 1));
    job.peers_of.emplace_back();
    if (between(random, 0, 2) == 0) {
      const std::uint32_t one = between(random, 0, ranks - 1);
      const std::uint32_t other = (one + between(random, 1, ranks - 1)) % ranks;
      job.peers_of.back() = {RankId(one), RankId(other)};
    }
  }
  for (std::uint32_t g = between(random, 0, 4); g > 0; --g) {
    Program::Group& group = job.groups.emplace_back();
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (between(random, 0, 4) == 0) group.members.push_back(RankId(r));
  }
  return job;
}

bool communicate_alike(const RankProgram& a, const RankProgram& b) {
  return a.ops[1] == b.ops[1] && a.dependencies == b.dependencies &&
         a.first_dependency == b.first_dependency;
}

/// Whether some third program meets both in groups, or exchanges with both by one number.
bool meet_the_same(const Program& job, std::uint32_t p, std::uint32_t q) {
  const auto meets = [&](std::uint32_t a, std::uint32_t b) {
    return std::any_of(job.groups.begin(), job.groups.end(), [&](const Program::Group& group) {
      const auto has = [&](std::uint32_t program) {
        return std::any_of(group.members.begin(), group.members.end(), [&](RankId member) {
          return job.program_of[member.index()] == program;
        });
      };
      return has(a) && has(b);
    });
  };
  const auto exchanges = [&](std::uint32_t a, std::uint32_t number, std::uint32_t b) {
    for (std::uint32_t r = 0; r < job.ranks(); ++r)
      if (job.program_of[r] == a && number < job.peers_of[r].size() &&
          job.program_of[job.peers_of[r][number].index()] == b)
        return true;
    return false;
  };
  for (std::uint32_t third = 0; third < job.programs.size(); ++third) {
    if (meets(p, third) && meets(q, third)) return true;
    for (const std::uint32_t number : {0U, 1U})
      if (exchanges(p, number, third) && exchanges(q, number, third)) return true;
  }
  return false;
}

TEST_CASE("jobs: ranks of a stage communicate alike with the same partners, pair by pair") {
  std::uint32_t larger = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Program job = random_meetings(random);
    const auto programs = static_cast<std::uint32_t>(job.programs.size());
    std::vector<std::uint32_t> stage(programs);
    std::iota(stage.begin(), stage.end(), 0U);
    for (std::uint32_t p = 0; p < programs; ++p)
      for (std::uint32_t q = 0; q < p; ++q)
        if (communicate_alike(job.programs[p], job.programs[q]) && meet_the_same(job, p, q)) {
          const std::uint32_t from = stage[p], to = stage[q];
          std::replace(stage.begin(), stage.end(), from, to);
        }
    const auto stages = ranks_of_stages(job);
    REQUIRE(stages.size() == programs);
    for (std::uint32_t p = 0; p < programs; ++p) {
      std::vector<RankId> ranks;
      for (std::uint32_t r = 0; r < job.ranks(); ++r)
        if (stage[job.program_of[r]] == stage[p]) ranks.push_back(RankId(r));
      CHECK(stages[p] == ranks);
      larger += stage[p] != p;
    }
  }
  CHECK(larger > 1000);  // else hardly any stage was of several programs
}

}  // namespace
}  // namespace rehearse::job
