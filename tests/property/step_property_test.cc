// Properties of step times without a graph. A failure prints the seed.

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/job/lower.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/lay_out.h"
#include "strategies/schedule.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "strategies/step/order_times.h"
#include "tests/support/layouts.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/random.h"
#include "tests/support/tiny_models.h"

namespace rehearse::step {
namespace {

using strategies::Schedule;
using test::between;
using test::Random;
using workload::Axis;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;

Layout random_pipeline(Random& random, std::uint32_t microbatches) {
  const auto schedule = static_cast<Schedule>(between(random, 0, 4));
  const std::uint32_t p = between(random, 1, 6);
  const std::uint32_t v = schedule == Schedule::kInterleaved ? between(random, 2, 3) : 1;
  Layout layout = test::layout_of({.stages = p, .chunks = v, .microbatches = p * microbatches}, {});
  for (std::uint32_t s = 0; s < p; ++s)
    layout.stages[s].order = strategies::order_of(schedule, {p, p * microbatches, v}, s, true);
  return layout;
}

TEST_CASE("orders: skipping the repetition changes nothing, and both are the longest path") {
  std::uint64_t evaluated = 0, slots = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Layout layout = random_pipeline(random, between(random, 1, 60));
    const auto chain = strategies::chain_of(layout);
    OrderCosts costs;
    std::vector<std::vector<test::PassTimes>> passes(layout.stages.size());
    for (std::size_t s = 0; s < passes.size(); ++s)
      passes[s].resize(layout.stages[s].chunks.size(), {Seconds::s(0), Seconds::s(0)});
    // Stages alike, nearly alike, or not at all.
    const std::uint32_t spread = between(random, 0, 2) * between(random, 1, 500);
    const auto time = [&](std::uint32_t least) {
      return Picoseconds(1000 * between(random, least, least + spread));
    };
    for (const strategies::ChunkPlace& place : chain) {
      costs.passes.push_back({time(1000), time(1500), time(700), time(900)});
      costs.transfers.push_back(Picoseconds(1000 * between(random, 0, 300)));
      costs.returns.push_back(Picoseconds(1000 * between(random, 0, 300)));
      const auto& c = costs.passes.back();
      test::PassTimes& t = passes[place.stage][place.chunk];
      t.forward = c[0].seconds();
      t.backward = c[1].seconds();
      t.backward_weights = c[2].seconds();
      t.recompute = c[3].seconds();
    }
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      passes[chain[i].stage][chain[i].chunk].send_forward = costs.transfers[i].seconds();
      passes[chain[i + 1].stage][chain[i + 1].chunk].send_backward = costs.returns[i].seconds();
    }
    const auto quick = order_times(layout, chain, costs, true);
    const auto all = order_times(layout, chain, costs, false);
    REQUIRE(quick);
    REQUIRE(all);
    CHECK(quick->end == all->end);
    CHECK(quick->last_begin == all->last_begin);
    evaluated += quick->slots;
    slots += all->slots;
    std::vector<std::span<const workload::Slot>> orders;
    for (const workload::Stage& stage : layout.stages) orders.emplace_back(stage.order);
    const auto reference = test::run_pipeline(orders, passes, layout.microbatches);
    REQUIRE(reference);
    CHECK(std::max_element(all->end.begin(), all->end.end())->seconds().s() ==
          Approx(reference->makespan.s()).epsilon(1e-9));
  }
  CHECK(evaluated < slots * 3 / 4);
}

TEST_CASE("orders that wait for each other are refused") {
  Layout layout = test::layout_of({.stages = 2, .microbatches = 2}, {});
  std::swap(layout.stages[1].order[0], layout.stages[1].order[1]);  // backward before forward
  const auto chain = strategies::chain_of(layout);
  OrderCosts costs;
  costs.passes.assign(2, {Picoseconds(1), Picoseconds(1), Picoseconds(1), Picoseconds(1)});
  costs.transfers.assign(2, Picoseconds(0));
  costs.returns = costs.transfers;
  const auto times = order_times(layout, chain, costs);
  REQUIRE_FALSE(times);
  CHECK(to_string(times.error()) ==
        "the stage orders deadlock: slot 2 of stage 0, microbatch 0; orders in "
        "which every pass follows its dependencies");
}

TEST_CASE("steps: a pipeline by hand, and FSDP") {
  const auto free = [](const auto&...) -> Result<Seconds> { return Seconds::s(0); };
  const auto given = [](const Op&, const workload::Stage&) -> Result<Seconds> {
    return Seconds::s(4);
  };
  const StepPrices prices{
      .op = test::seconds_price, .collective = given, .message = free, .to_servers = free};
  // 8 microbatches through 4 stages of 1 s forward and 2 s backward: 11 · 3 s, 9 of them idle.
  const Layer layer{
      .name = "a", .forward = {test::seconds_op(1)}, .backward = {test::seconds_op(2)}};
  const auto pipeline = closed_step(
      test::layout_of({.stages = 4, .layers = 1, .microbatches = 8}, layer), prices, {});
  REQUIRE(pipeline);
  CHECK(pipeline->step.s() == Approx(33));
  CHECK(pipeline->compute.s() == Approx(24));
  CHECK(pipeline->bubble.s() == Approx(9));
  // Three layers of 10 s backward with a gather and a scatter of 4 s each: 10 + 0.1 · 8 s.
  const Layer sharded{.name = "a",
                      .forward = {},
                      .backward = {test::collective_op(CollectiveKind::kAllGather, Axis::kData,
                                                       Bytes::mb(1), Issue::kPrefetched),
                                   test::seconds_op(10),
                                   test::collective_op(CollectiveKind::kReduceScatter, Axis::kData,
                                                       Bytes::mb(1), Issue::kDeferred)}};
  const auto fsdp = closed_step(
      test::layout_of({.degrees = {.data = 2}, .layers = 3, .microbatches = 1}, sharded), prices,
      {});
  REQUIRE(fsdp);
  CHECK(fsdp->step.s() == Approx(3 * 10.8));
}

TEST_CASE("steps: a pass of a block takes at least as long as its host") {
  const auto given = [](const Op&, const workload::Stage&) -> Result<Seconds> {
    return Seconds::ms(2.5);
  };
  const auto free = [](const auto&...) -> Result<Seconds> { return Seconds::s(0); };
  const StepPrices prices{
      .op = test::seconds_price, .collective = given, .message = free, .to_servers = free};
  const auto step = [&](const Layer& layer, Seconds block) {
    StepOptions options;
    options.job.host = {.layer = block, .layer_tensor = block};
    const auto time = closed_step(
        test::layout_of({.degrees = {.tensor = 2}, .layers = 2, .microbatches = 1}, layer), prices,
        options);
    REQUIRE(time);
    return time->step.s() * 1e3;
  };
  // Forward 1 ms and backward 2 ms on the device. Of 6.9 ms the host takes 3 ms for forward.
  Layer layer{
      .name = "a", .forward = {test::seconds_op(1e-3)}, .backward = {test::seconds_op(2e-3)}};
  layer.host_work = 1;
  CHECK(step(layer, Seconds::ms(6.9)) == Approx(2 * (3 + 3.9)));
  CHECK(step(layer, Seconds::ms(1)) == Approx(2 * (1 + 2)));
  layer.host_work = 2;
  CHECK(step(layer, Seconds::ms(3.45)) == Approx(2 * (3 + 3.9)));
  // Recomputing takes another forward, in backward.
  layer.recompute = layer.forward;
  CHECK(step(layer, Seconds::ms(3.45)) == Approx(2 * (3 + 3.9 + 3)));
  layer.recompute = {};
  // Communication that the pass waits for is launched with it, and takes 1 + 2.5 ms, longer than
  // 3 ms. The host runs ahead meanwhile; backward it is the host that takes longer, and in all.
  layer.forward.push_back(
      test::collective_op(CollectiveKind::kAllReduce, Axis::kTensor, Bytes::mb(1), Issue::kInline));
  CHECK(step(layer, Seconds::ms(3.45)) == Approx(2 * (3 + 3.9)));
  // A layer whose host is not known takes the time of its kernels.
  layer.host_work = 0;
  CHECK(step(layer, Seconds::ms(3.45)) == Approx(2 * (3.5 + 2)));
}

enum class Overlap : std::uint8_t { kNothing, kSome };

std::vector<Op> random_ops(Random& random, Axis axis, std::initializer_list<Issue> issues) {
  std::vector<Op> ops;
  for (std::uint32_t i = between(random, 1, 6); i > 0; --i) {
    if (between(random, 0, 2) > 0) {
      ops.push_back(test::seconds_op(between(random, 0, 200) * 1e-6));
      continue;
    }
    // As arguments of one call, compilers would draw them in different orders.
    const Issue issue =
        issues.begin()[between(random, 0, static_cast<std::uint32_t>(issues.size() - 1))];
    const Bytes bytes = Bytes::b(between(random, 1, 4'000'000));
    ops.push_back(test::collective_op(CollectiveKind::kAllGather, axis, bytes, issue));
  }
  return ops;
}

Layout random_layout(Random& random, Overlap overlap) {
  Layout layout = random_pipeline(random, between(random, 1, 3));
  const workload::Degrees degrees{.data = 1U << between(random, 0, 2),
                                  .tensor = 1U << between(random, 0, 1)};
  Layer layer{.name = "layer", .forward = {}, .backward = {}};
  const auto fill = [&](std::vector<Op>& ops) {
    ops = overlap == Overlap::kNothing
              ? random_ops(random, Axis::kTensor, {Issue::kInline, Issue::kOverlapNext})
              : random_ops(
                    random, between(random, 0, 1) == 0 ? Axis::kTensor : Axis::kData,
                    {Issue::kInline, Issue::kOverlapNext, Issue::kPrefetched, Issue::kDeferred});
  };
  fill(layer.forward);
  fill(layer.backward);
  fill(layer.recompute);
  for (Op& op : layer.backward) op.weight_gradient = between(random, 0, 2) == 0;
  layer.step =
      random_ops(random, Axis::kData, {Issue::kInline, Issue::kOverlapNext, Issue::kDeferred});
  layer.output = Bytes::b(between(random, 0, 2'000'000));
  layer.host_work = 0.5 * static_cast<double>(layer.forward.size() % 4);
  if (between(random, 0, 1) == 0) layout.tied_gradient = Bytes::b(1'000'000);
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s) {
    layout.stages[s].degrees = degrees;
    layout.stages[s].first_rank = s * degrees.ranks();
    for (workload::Chunk& chunk : layout.stages[s].chunks) {
      chunk.layers = {layer};
      chunk.layers[0].count = between(random, 1, 3);
      for (Op& op : chunk.layers[0].backward)
        if (!op.communicates()) op.bytes = op.bytes * (0.1 * between(random, 8, 12));
    }
  }
  return layout;
}

/// Nothing if ranks of a stage are placed differently on the cluster.
std::optional<Seconds> by_engine(const Layout& layout, const cluster::Cluster& cluster,
                                 const job::Rules& rules, const StepOptions& options,
                                 const strategies::Prices& prices = test::seconds_price) {
  const auto job = strategies::job_of(layout, prices, options.job);
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  const auto folded = job::fold(*job, cluster, rules);
  REQUIRE(folded);
  if (!*folded) return std::nullopt;
  const auto timeline = engine::run((*folded)->graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return timeline->makespan().seconds();
}

cluster::Cluster cluster_for(const Layout& layout) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: 4, nodes: {}, inter_node: "
                  "{{kind: switch, links: 4, rate: 50 GB/s, latency: 5 us}}}}\n",
                  layout.ranks() / 4 + 1),
      "cluster");
  REQUIRE(cluster);
  return *cluster;
}

Seconds by_sums(const Layout& layout, const cluster::Cluster& cluster, const job::Rules& rules,
                const StepOptions& options, const strategies::Prices& ops = test::seconds_price) {
  CollectivePrices prices(cluster, rules);
  const auto time = closed_step(layout, prices.step_prices(ops), options);
  INFO((time ? "" : to_string(time.error())));
  REQUIRE(time);
  CHECK(time->compute <= time->step);
  return time->step;
}

TEST_CASE("steps: equal to the engine, to rounding, if nothing runs in the background") {
  std::uint32_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Layout layout = random_layout(random, Overlap::kNothing);
    // Passes that fill the launch queue, or do not.
    for (workload::Stage& stage : layout.stages)
      for (workload::Chunk& chunk : stage.chunks)
        for (Op& op : chunk.layers[0].forward)
          if (seed % 3 == 2) op.kernels = between(random, 1, 500);
    const cluster::Cluster cluster = cluster_for(layout);
    const job::Rules rules{.fidelity = job::Fidelity::kClosed, .calibrated = seed % 2 == 0};
    StepOptions options;
    if (seed % 3 == 0) options.job = {.host_per_kernel = Seconds::us(60), .fixed = Seconds::us(50)};
    if (seed % 3 != 1) {
      const auto block = [&] { return Seconds::us(between(random, 0, 3000)); };
      options.job.host = {.layer = block(), .layer_tensor = block(), .layer_pipeline = block()};
      options.job.blocking = seed % 7 == 0;
    }
    const auto engine = by_engine(layout, cluster, rules, options);
    if (!engine) continue;
    ++compared;
    // Every op rounds to a picosecond.
    CHECK(by_sums(layout, cluster, rules, options).s() == Approx(engine->s()).epsilon(1e-8));
  }
  CHECK(compared >= 150);
}

/// Checks the step without a graph between its bounds, which hold the engine's. Returns its ratio to
/// the engine's.
std::optional<double> check_between(const Layout& layout, StepOptions options) {
  const cluster::Cluster cluster = cluster_for(layout);
  const job::Rules rules{.fidelity = job::Fidelity::kClosed};
  const auto engine = by_engine(layout, cluster, rules, options);
  if (!engine) return std::nullopt;
  const Seconds overlap_penalty = by_sums(layout, cluster, rules, options);
  options.background = Background::kFree;
  const Seconds free = by_sums(layout, cluster, rules, options);
  options.background = Background::kInline;
  const Seconds serial = by_sums(layout, cluster, rules, options);
  const Seconds rounding = Seconds::ns(1);
  CHECK(free <= overlap_penalty + rounding);
  CHECK(overlap_penalty <= serial + rounding);
  CHECK(free <= *engine + rounding);
  CHECK(*engine <= serial + rounding);
  return overlap_penalty / *engine;
}

TEST_CASE("steps: the host launches a layer while streams run what an earlier one left to them") {
  const auto gather = [](Bytes bytes, Issue issue) {
    return test::collective_op(CollectiveKind::kAllGather, Axis::kTensor, bytes, issue);
  };
  const auto layout = [](std::uint32_t layers, const Layer& layer) {
    return test::layout_of({.degrees = {.tensor = 2}, .layers = layers, .microbatches = 1}, layer);
  };
  const auto alone = [&](Bytes bytes) {
    const Layout one =
        layout(1, {.name = "a", .forward = {gather(bytes, Issue::kInline)}, .backward = {}});
    return by_sums(one, cluster_for(one), {.fidelity = job::Fidelity::kClosed}, {});
  };
  const Bytes large = Bytes::mb(200), small = Bytes::mb(1);
  const Seconds p = alone(large), x = alone(small);
  // The weights of the second layer are gathered during the first, whose own collective waits for
  // them: until 2 p + x. Its launches end later, at 3 p; and backward follows.
  Layer layer{.name = "a",
              .forward = {gather(large, Issue::kPrefetched), test::seconds_op(p.s() * 0.1),
                          gather(small, Issue::kInline)},
              .backward = {}};
  layer.host_work = 1;
  const Seconds forward = p * 1.5, backward = forward * 1.3;
  StepOptions options{.overlap_loss = 0};
  options.job.host = {.layer = forward + backward, .layer_tensor = forward + backward};
  const Layout two = layout(2, layer);
  const auto engine =
      by_engine(two, cluster_for(two), {.fidelity = job::Fidelity::kClosed}, options);
  REQUIRE(engine);
  CHECK(x < p * 0.4);
  CHECK(engine->s() == Approx((p * 3 + backward * 2).s()).epsilon(1e-8));
  CHECK(check_between(two, options));
}

TEST_CASE("steps: with overlap, between fully hidden and not hidden") {
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Layout layout = random_layout(random, Overlap::kSome);
    // While launches determine a pass, streams go on with what earlier passes left to them.
    StepOptions options{.overlap_loss = 0};
    options.job.host = {.layer = Seconds::us(400), .layer_tensor = Seconds::us(700)};
    check_between(layout, options);
    options.job.host = {};
    if (const auto ratio = check_between(layout, options)) ratios.push_back(*ratio);
  }
  REQUIRE(ratios.size() >= 150);
  std::sort(ratios.begin(), ratios.end());
  // Too short where layers wait for streams that others hold: 0.82 at worst.
  CHECK(ratios.front() >= 0.8);
  CHECK(ratios[ratios.size() / 10] >= 0.99);
  CHECK(ratios[ratios.size() * 9 / 10] <= 1.001);
  CHECK(ratios.back() <= 1.03);  // 1.045 was seen with 300 other layouts
}

strategies::Plan random_plan(Random& random) {
  strategies::Plan plan{.data = 1U << between(random, 0, 2),
                        .tensor = 1U << between(random, 0, 1),
                        .pipeline = 1U << between(random, 0, 2),
                        .context = 1U << between(random, 0, 1)};
  plan.schedule = static_cast<Schedule>(between(random, 0, 4));
  if (plan.schedule == Schedule::kInterleaved) plan.interleave = 2;
  plan.zero = between(random, 0, 3);
  plan.sequence_parallel = between(random, 0, 1) == 1;
  plan.asynchronous_tensor = between(random, 0, 1) == 1;
  plan.overlap_gradients = between(random, 0, 1) == 1;
  plan.overlap_tensor = plan.overlap_gradients;
  if (!plan.overlap_gradients) plan.gather_weights = strategies::GatherWeights::kByTensor;
  plan.bucket = Bytes::kib(between(random, 1, 200));
  if (between(random, 0, 2) == 0) {
    plan.synchronization = strategies::Synchronization::kParameterServer;
    plan.zero = 0;
    plan.parameter_server.servers = between(random, 1, 2);
  }
  return plan;
}

TEST_CASE("steps: plans of a transformer become jobs that run, and fold, within the bounds") {
  std::uint32_t ran = 0, servers = 0, folds = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const strategies::Plan plan = random_plan(random);
    const strategies::Training training{
        .global_batch = 32, .recompute = static_cast<strategies::Recompute>(between(random, 0, 2))};
    const workload::Workload model = test::tiny_gpt({.tied = between(random, 0, 1) == 1});
    const auto layout = strategies::lay_out(model, training, plan);
    if (!layout) continue;
    ++ran;
    const cluster::Cluster cluster = cluster_for(*layout);
    const job::Rules rules{.fidelity = job::Fidelity::kClosed};
    const auto job = strategies::job_of(*layout, test::roofline_price, {});
    INFO((job ? "" : to_string(job.error())));
    REQUIRE(job);
    const auto all = job::lower(*job, cluster, rules);
    INFO((all ? "" : to_string(all.error())));
    REQUIRE(all);
    const auto timeline = engine::run(all->graph);
    INFO((timeline ? "" : to_string(timeline.error())));
    REQUIRE(timeline);
    if (layout->servers) ++servers;
    StepOptions options{.overlap_loss = 0};
    const auto engine = by_engine(*layout, cluster, rules, options, test::roofline_price);
    if (!engine) continue;
    ++folds;
    CHECK(engine->s() == Approx(timeline->makespan().seconds().s()).epsilon(1e-12));
    if (layout->servers) continue;
    const auto step = [&](Background background) {
      options.background = background;
      return by_sums(*layout, cluster, rules, options, test::roofline_price);
    };
    const Seconds rounding = Seconds::ns(1);
    CHECK(step(Background::kFree) <= *engine + rounding);
    CHECK(*engine <= step(Background::kInline) + rounding);
  }
  CHECK(ran >= 50);
  CHECK(servers >= 6);
  CHECK(folds >= 27);
}

TEST_CASE("steps: with servers, equal to the engine with all ranks, to rounding") {
  std::uint32_t more_servers = 0, do_not_divide = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const strategies::Plan plan{
        .data = between(random, 1, 6),
        .tensor = between(random, 1, 2),
        .synchronization = strategies::Synchronization::kParameterServer,
        .parameter_server = {.servers = between(random, 1, 8)},
        .overlap_gradients = false,
    };
    const std::uint32_t servers = plan.parameter_server.servers;
    INFO("data " << plan.data << ", tensor " << plan.tensor << ", servers " << servers);
    const auto layout =
        strategies::lay_out(test::tiny_gpt({}), {.global_batch = 2.0 * plan.data}, plan);
    INFO((layout ? "" : to_string(layout.error())));
    REQUIRE(layout);
    // Tensor ranks of one worker on one node: then all groups cost what the first one does.
    const std::uint32_t per_node = plan.tensor * between(random, 1, 3);
    const auto cluster = cluster::parse_cluster(
        fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: {}, nodes: {}, inter_node: "
                    "{{kind: switch, links: {}, rate: 1 GB/s, latency: 5 us}}}}\n",
                    per_node, layout->ranks() / per_node + 1, between(random, 1, per_node)),
        "cluster");
    REQUIRE(cluster);
    const job::Rules rules{.fidelity = job::Fidelity::kClosed};
    const auto job = strategies::job_of(*layout, test::roofline_price, {});
    REQUIRE(job);
    const auto all = job::lower(*job, *cluster, rules);
    REQUIRE(all);
    const auto engine = engine::run(all->graph);
    REQUIRE(engine);
    const Seconds sums =
        by_sums(*layout, *cluster, rules, {.overlap_loss = 0}, test::roofline_price);
    // Every op rounds to a picosecond.
    CHECK(sums.s() == Approx(engine->makespan().seconds().s()).epsilon(1e-8));
    if (servers > plan.data) ++more_servers;
    if (std::max(servers, plan.data) % std::min(servers, plan.data) != 0) ++do_not_divide;
  }
  CHECK(more_servers >= 50);
  CHECK(do_not_divide >= 50);
}

}  // namespace
}  // namespace rehearse::step
