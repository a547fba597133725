// Properties of jobs on several kinds of devices. A failure prints the seed.

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/job/lower.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/lay_out.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "tests/support/layouts.h"
#include "tests/support/random.h"
#include "tests/support/tiny_models.h"

namespace rehearse::step {
namespace {

using strategies::Prices;
using test::between;
using test::Random;
using workload::Layout;

/// Nodes of two kinds of devices, with networks of their own, in turn.
cluster::Cluster cluster_for(std::uint32_t ranks) {
  std::string nodes;
  for (std::uint32_t n = 0; n <= ranks / 4; ++n)
    nodes += n % 2 == 0
                 ? "    - {device: a100_sxm4_80, devices_per_node: 4}\n"
                 : "    - {device: v100_sxm2_32, devices_per_node: 4, inter_node: {links: 2}}\n";
  auto cluster = cluster::parse_cluster(
      "cluster:\n  nodes:\n" + nodes + "  inter_node: {links: 4, rate: 25 GB/s, latency: 5 us}\n",
      "cluster");
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return *cluster;
}

strategies::Price slower(double factor) {
  return [factor](const workload::Op& op) { return test::roofline_price(op) * factor; };
}

/// A kind for each stage, and one for servers.
Prices by_stage(const Layout& layout, const std::vector<double>& factors) {
  std::vector<strategies::KindPrice> kinds;
  for (const double factor : factors) kinds.push_back({slower(factor)});
  std::vector<std::uint32_t> kind_of(layout.ranks(),
                                     static_cast<std::uint32_t>(factors.size() - 1));
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s)
    for (std::uint32_t r = 0; r < layout.stages[s].degrees.ranks(); ++r)
      kind_of[layout.stages[s].first_rank + r] = s;
  return {std::move(kinds), std::move(kind_of)};
}

/// Half of the replicas of every stage on another kind, which a rank of each kind then represents.
Prices by_replica(const Layout& layout, double one, double other) {
  std::vector<std::uint32_t> kind_of(layout.ranks(), 0);
  for (const workload::Stage& stage : layout.stages)
    for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r)
      kind_of[stage.first_rank + r] = 2 * r >= stage.degrees.ranks() ? 1 : 0;
  return {{{slower(one)}, {slower(other)}}, std::move(kind_of)};
}

/// Two kinds among the ranks of any stage.
Prices at_random(Random& random, const Layout& layout, double one, double other) {
  std::vector<std::uint32_t> kind_of;
  for (std::uint32_t r = 0; r < layout.ranks(); ++r) kind_of.push_back(between(random, 0, 1));
  return {{{slower(one)}, {slower(other)}}, std::move(kind_of)};
}

struct Case {
  Layout layout;
  cluster::Cluster cluster;
};

/// Nothing where the plan does not go.
std::optional<Case> random_case(Random& random) {
  strategies::Plan plan{.data = 1U << between(random, 0, 2),
                        .tensor = 1U << between(random, 0, 1),
                        .pipeline = 1U << between(random, 0, 2)};
  plan.schedule = static_cast<strategies::Schedule>(between(random, 0, 4));
  if (plan.schedule == strategies::Schedule::kInterleaved) plan.interleave = 2;
  plan.zero = between(random, 0, 3);
  plan.overlap_gradients = between(random, 0, 1) == 1;
  plan.bucket = Bytes::kib(between(random, 1, 200));
  if (between(random, 0, 3) == 0) {
    plan.synchronization = strategies::Synchronization::kParameterServer;
    plan.zero = 0;
    plan.parameter_server.servers = between(random, 1, 2);
  }
  if (between(random, 0, 3) == 0) {
    plan.schedule = strategies::Schedule::k1f1b;
    plan.interleave = 1;
    plan.stages = {{.layers = between(random, 1, 8), .data = plan.data, .tensor = plan.tensor},
                   {.data = std::max(1U, plan.data / 2), .tensor = 1}};
  }
  const strategies::Training training{
      .global_batch = 32, .recompute = static_cast<strategies::Recompute>(between(random, 0, 2))};
  auto layout =
      strategies::lay_out(test::tiny_gpt({.tied = between(random, 0, 1) == 1}), training, plan);
  if (!layout) return std::nullopt;
  cluster::Cluster cluster = cluster_for(layout->ranks());
  return Case{std::move(*layout), std::move(cluster)};
}

const job::Rules kClosed{.fidelity = job::Fidelity::kClosed};

program::Program job_from(const Layout& layout, const Prices& prices) {
  auto job = strategies::job_of(layout, prices, {});
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(*job);
}

Picoseconds time_of(const graph::Graph& graph) {
  const auto timeline = engine::run(graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return timeline->makespan();
}

Picoseconds unfolded(const Case& c, const Prices& prices, const job::Rules& rules = kClosed) {
  const auto lowered = job::lower(job_from(c.layout, prices), c.cluster, rules);
  INFO((lowered ? "" : to_string(lowered.error())));
  REQUIRE(lowered);
  return time_of(lowered->graph);
}

std::optional<Picoseconds> folded(const Case& c, const Prices& prices,
                                  const job::Rules& rules = kClosed) {
  const auto run = [](const graph::Graph& graph) { return engine::run(graph); };
  const auto lowered = job::fold(job_from(c.layout, prices), c.cluster, rules, run);
  INFO((lowered ? "" : to_string(lowered.error())));
  REQUIRE(lowered);
  if (!*lowered) return std::nullopt;
  return time_of((*lowered)->graph);
}

TEST_CASE("mixed: kinds with equal numbers are one kind, to the picosecond") {
  std::uint32_t ran = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c) continue;
    ++ran;
    const Prices mixed = at_random(random, c->layout, 1.5, 1.5);
    CHECK(unfolded(*c, mixed) == unfolded(*c, slower(1.5)));
    const job::Rules messages{.fidelity = job::Fidelity::kMessage};
    if (seed % 4 == 0) CHECK(unfolded(*c, mixed, messages) == unfolded(*c, slower(1.5), messages));
  }
  CHECK(ran >= 60);
}

TEST_CASE("mixed: one rank of each kind and stage gives the result of all ranks") {
  std::uint32_t folds = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c) continue;
    std::vector<double> factors;
    for (std::size_t s = 0; s <= c->layout.stages.size(); ++s)
      factors.push_back(0.5 * between(random, 1, 8));
    const Prices prices = by_stage(c->layout, factors);
    const auto one = folded(*c, prices);
    if (!one) continue;
    ++folds;
    CHECK(*one == unfolded(*c, prices));
  }
  CHECK(folds >= 40);
}

TEST_CASE("mixed: replicas on two kinds synchronise, with one rank of each kind for all") {
  std::uint32_t folds = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c || c->layout.stages.front().degrees.data < 4) continue;
    const Prices prices = by_replica(c->layout, 1, 0.5 * between(random, 1, 6));
    // All on one switch, where groups cost the same at any place.
    const auto flat = cluster::parse_cluster(
        fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: {}}}\n", c->layout.ranks()),
        "cluster");
    REQUIRE(flat);
    const Case on_one{c->layout, *flat};
    const auto one = folded(on_one, prices);
    if (!one) continue;
    ++folds;
    CHECK(*one == unfolded(on_one, prices));
    if (on_one.layout.servers) continue;
    const job::Rules messages{.fidelity = job::Fidelity::kMessage};
    const auto few = folded(on_one, prices, messages);
    REQUIRE(few);
    const double ratio = few->seconds() / unfolded(on_one, prices, messages).seconds();
    CHECK(ratio <= 1 + 1e-6);
    CHECK(ratio >= 0.84);
  }
  CHECK(folds >= 20);
}

TEST_CASE("mixed: as messages, one rank for all takes as long as all ranks") {
  const job::Rules messages{.fidelity = job::Fidelity::kMessage};
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c || c->layout.servers) continue;
    std::vector<double> factors;
    for (std::size_t s = 0; s <= c->layout.stages.size(); ++s)
      factors.push_back(0.5 * between(random, 1, 8));
    const Prices prices = by_stage(c->layout, factors);
    const auto one = folded(*c, prices, messages);
    if (!one) continue;
    ratios.push_back(one->seconds() / unfolded(*c, prices, messages).seconds());
  }
  REQUIRE(ratios.size() >= 30);
  std::sort(ratios.begin(), ratios.end());
  CHECK(ratios.front() >= 0.99);
  CHECK(ratios[ratios.size() / 10] >= 0.999);
  CHECK(ratios[ratios.size() * 9 / 10] <= 1 + 1e-6);
  // Too long where members of an exchange begin at different times, and the first messages of all
  // have the links to themselves.
  CHECK(ratios.back() <= 1.04);
}

TEST_CASE("mixed: replacing a device by a slower one never makes the step shorter") {
  std::uint32_t ran = 0;
  for (std::uint64_t seed = 1; seed <= 75; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c) continue;
    ++ran;
    std::vector<double> factors(c->layout.stages.size() + 1, 1);
    Picoseconds before = unfolded(*c, by_stage(c->layout, factors));
    for (int change = 0; change < 3; ++change) {
      factors[between(random, 0, static_cast<std::uint32_t>(factors.size() - 1))] *= 1.5;
      const Picoseconds after = unfolded(*c, by_stage(c->layout, factors));
      CHECK(after >= before);
      before = after;
    }
    // Some ranks of the stages, and then all.
    const Picoseconds some = unfolded(*c, at_random(random, c->layout, 1, 2));
    CHECK(some >= unfolded(*c, slower(1)));
    CHECK(some <= unfolded(*c, slower(2)));
  }
  CHECK(ran >= 36);
}

TEST_CASE("mixed: step times without a graph lie within their bounds, and refuse mixed stages") {
  std::uint32_t compared = 0, equal = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto c = random_case(random);
    if (!c || c->layout.servers) continue;
    CollectivePrices prices(c->cluster, kClosed);
    const auto step = [&](const Prices& ops, Background background) {
      return closed_step(c->layout, prices.step_prices(ops),
                         {.overlap_loss = 0, .background = background});
    };
    std::vector<double> factors;
    for (std::size_t s = 0; s <= c->layout.stages.size(); ++s)
      factors.push_back(0.5 * between(random, 1, 8));
    const Prices ops = by_stage(c->layout, factors);
    if (const auto engine = folded(*c, ops)) {
      ++compared;
      const auto free = step(ops, Background::kFree),
                 overlap_penalty = step(ops, Background::kOverlapped),
                 serial = step(ops, Background::kInline);
      REQUIRE(free);
      REQUIRE(overlap_penalty);
      REQUIRE(serial);
      const Seconds rounding = Seconds::ns(1);
      CHECK(free->step <= engine->seconds() + rounding);
      CHECK(engine->seconds() <= serial->step + rounding);
      if (free->step == serial->step) {
        ++equal;
        CHECK(overlap_penalty->step.s() == Approx(engine->seconds().s()).epsilon(1e-8));
      }
    }
    const Prices mixed = at_random(random, c->layout, 1, 2);
    bool several = false;
    for (const workload::Stage& stage : c->layout.stages)
      several |= kinds_of(mixed, strategies::ranks_of(stage)).size() > 1;
    const auto other = step(mixed, Background::kOverlapped);
    CHECK(other.has_value() == !several);
    refused += several;
    if (!other)
      CHECK(to_string(other.error())
                .find("uses 2 kinds of devices; one kind of device, or simulation instead of "
                      "closed form") != std::string::npos);
  }
  CHECK(compared >= 50);
  CHECK(equal >= 10);
  CHECK(refused >= 50);
}

}  // namespace
}  // namespace rehearse::step
