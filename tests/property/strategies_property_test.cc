// Properties of layouts and schedules under random plans. A failure prints the seed.
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/workload/zoo.h"
#include "strategies/lay_out.h"
#include "strategies/schedule.h"
#include "tests/support/layout_sums.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/tiny_models.h"
#include "tests/support/zoo_model.h"

namespace rehearse::strategies {
namespace {

using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::Pass;
using workload::Slot;
using Random = std::mt19937_64;

template <class T, std::size_t n>
T one_of(Random& random, const T (&values)[n]) {
  return values[random() % n];
}

struct Case {
  test::TinyGpt model;
  Training training;
  Plan plan;
};

Case random_case(Random& random) {
  Case c;
  c.model.layers = 12;
  c.model.flash = random() % 2 == 0;
  c.model.experts = one_of(random, {0u, 8u});
  c.model.tied = random() % 2 == 0;
  Plan& plan = c.plan;
  plan.data = one_of(random, {1u, 2u, 4u, 8u});
  plan.tensor = one_of(random, {1u, 2u, 4u});
  plan.pipeline = one_of(random, {1u, 2u, 3u, 5u});
  plan.context = one_of(random, {1u, 2u});
  plan.context_exchange = ContextExchange::kAllToAll;
  if (c.model.flash && random() % 2 == 0) plan.context_exchange = ContextExchange::kRing;
  if (c.model.experts > 0) plan.expert = std::gcd(plan.data, one_of(random, {1u, 2u, 4u}));
  plan.expert_exchange = one_of(random, {ExpertExchange::kTokens, ExpertExchange::kWeights,
                                         ExpertExchange::kCheaper, ExpertExchange::kTokensOnce});
  plan.overlap_experts = random() % 2 == 0;
  plan.schedule = one_of(random, {Schedule::kGpipe, Schedule::k1f1b, Schedule::kZeroBubble});
  plan.zero = static_cast<std::uint32_t>(random() % 4);
  plan.sequence_parallel = random() % 2 == 0;
  plan.asynchronous_tensor = random() % 2 == 0;
  plan.overlap_gradients = random() % 2 == 0;
  plan.bucket = Bytes::b(one_of(random, {1e3, 2e5, 1e6, 1e9}));
  c.training.microbatch = one_of(random, {1.0, 2.0});
  c.training.global_batch = c.training.microbatch * plan.data * one_of(random, {1.0, 3.0, 8.0});
  c.training.recompute =
      one_of(random, {Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  return c;
}

Flops forward_flops(const workload::Workload& w, bool (*counted)(const Op&)) {
  Flops sum = Flops::flop(0);
  for (const Layer& layer : w.layers)
    if (layer.name == "block")
      for (const Op& op : layer.forward)
        if (counted(op)) sum += flops_of(op) * layer.count;
  return sum;
}

TEST_CASE("under every plan a layout computes, holds and sums the same as the workload") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Case c = random_case(random);
    const workload::Workload w = test::tiny_gpt(c.model);
    const Result<Layout> layout = lay_out(w, c.training, c.plan);
    INFO((layout ? "" : to_string(layout.error())));
    REQUIRE(layout);
    CHECK(layout->ranks() == ranks_of(c.plan));
    CHECK(layout->model_flops.flop() == Approx(w.model_flops().flop() * c.training.global_batch));

    Flops expected = w.model_flops();
    if (c.training.recompute == Recompute::kFull)
      expected += forward_flops(w, [](const Op&) { return true; });
    if (c.training.recompute == Recompute::kSelective && !c.model.flash)
      expected += forward_flops(w, [](const Op& op) { return op.core; });
    CHECK(test::flops_over_ranks(*layout).flop() ==
          Approx((expected * c.training.global_batch).flop()));

    const double copies =
        c.model.tied && c.plan.pipeline > 1 ? c.model.vocabulary * c.model.hidden : 0;
    CHECK(test::parameters_over_ranks(*layout) == Approx(w.parameters() + copies));

    // Every gradient that others have too is summed once a step, or in every microbatch.
    std::uint32_t layers = 0;
    for (const workload::Stage& stage : layout->stages) {
      double needed = 0, summed = 0, updated = 0, held = 0;
      for (const workload::Chunk& chunk : stage.chunks)
        for (const Layer& layer : chunk.layers) {
          layers += layer.count;
          for (const workload::Weights& weights : layer.weights) {
            const double sharers = double(stage.degrees.data) * stage.degrees.context /
                                   (weights.expert ? stage.degrees.expert : 1);
            held += layer.count * weights.count / (c.plan.zero > 0 ? sharers : 1);
            if (sharers > 1) needed += layer.count * weights.count * 4;
          }
          for (const Op& op : layer.step) {
            if (op.name == "update parameters") updated += layer.count * op.bytes.b();
            if (op.collective == CollectiveKind::kAllReduce ||
                op.collective == CollectiveKind::kReduceScatter)
              summed += layer.count * op.bytes.b();
          }
          for (const Op& op : layer.backward)
            if (op.axis == workload::Axis::kData && op.collective == CollectiveKind::kReduceScatter)
              summed += layer.count * op.bytes.b();
        }
      CHECK(summed == Approx(needed));
      CHECK(updated == Approx(held * (c.plan.zero == 3 ? 40 : 46)));
    }
    CHECK(layers == w.layer_count());
  }
}

// Embedding and blocks of any model, cut in two with every token and head on one rank of two.
TEST_CASE("every model of the zoo is divided without loss") {
  std::size_t models = 0, divided = 0;
  for (const workload::ZooModel& model : workload::zoo()) {
    if (model.family) continue;
    ++models;
    INFO(model.name);
    const Result<workload::Workload> w = test::zoo_model(model.name);
    REQUIRE(w);
    const Training training{.global_batch = 16};
    Plan plan{.data = 4, .tensor = 2, .pipeline = 2, .sequence_parallel = true};
    if (w->experts > 0) plan.expert = 2;
    Result<Layout> layout = lay_out(*w, training, plan);
    divided += layout.has_value();
    if (!layout) {
      CHECK(to_string(layout.error()).find("tensor 2") == 0);
      plan.tensor = 1;
      layout = lay_out(*w, training, plan);
    }
    REQUIRE(layout);
    CHECK(test::flops_over_ranks(*layout).flop() == Approx(16 * w->model_flops().flop()));
    CHECK(test::parameters_over_ranks(*layout) >= Approx(w->parameters()));
    if (!w->tied_embedding) CHECK(test::parameters_over_ranks(*layout) == Approx(w->parameters()));
  }
  CHECK(divided > models / 2);
}

TEST_CASE("the same plan gives the same layout") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Case c = random_case(random);
    const workload::Workload w = test::tiny_gpt(c.model);
    const Result<Layout> a = lay_out(w, c.training, c.plan), b = lay_out(w, c.training, c.plan);
    REQUIRE(a);
    REQUIRE(b);
    std::vector<double> seen[2];
    for (const bool second : {false, true})
      test::visit_ops(second ? *b : *a, [&](const Op& op, const workload::Stage&, double times) {
        for (const double v : {op.m, op.n, op.k, op.batch, op.bytes.b(), times})
          seen[second].push_back(v);
      });
    CHECK(seen[0] == seen[1]);
  }
}

TEST_CASE("every pass is once in an order, and no order waits for another forever") {
  for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved,
                                  Schedule::kZeroBubble, Schedule::kShifted})
    for (std::uint32_t p = 1; p <= 9; ++p)
      for (std::uint32_t m = 1; m <= 20; ++m)
        for (std::uint32_t v = 1; v <= 4; ++v) {
          if (v > 1 && (schedule != Schedule::kInterleaved || m % p != 0 || p == 1)) continue;
          INFO(kScheduleNames[int(schedule)] << ", p " << p << ", m " << m << ", v " << v);
          std::vector<std::vector<Slot>> orders;
          std::vector<std::span<const Slot>> spans;
          for (std::uint32_t s = 0; s < p; ++s) {
            orders.push_back(order_of(schedule, {p, m, v}, s, true));
            std::set<std::tuple<int, std::uint32_t, std::uint32_t>> seen;
            std::size_t before = 0;
            for (const Slot& slot : orders.back()) {
              before += seen.insert({int(slot.pass), slot.chunk, slot.microbatch}).second;
              if (slot.pass != Pass::kForward)
                before += seen.contains({int(Pass::kForward), slot.chunk, slot.microbatch});
            }
            const std::size_t passes =
                schedule == Schedule::kZeroBubble || (schedule == Schedule::kShifted) ? 3 : 2;
            const bool complete =
                orders.back().size() == passes * m * v && before == (2 * passes - 1) * m * v;
            if (!complete) CHECK(complete);
          }
          for (const std::vector<Slot>& order : orders) spans.emplace_back(order);
          const test::PassTimes times{.forward = Seconds::ms(1),
                                      .backward = Seconds::ms(2),
                                      .backward_weights = Seconds::ms(1),
                                      .recompute = Seconds::ms(1)};
          const auto run = test::run_pipeline(
              spans,
              std::vector<std::vector<test::PassTimes>>(p, std::vector<test::PassTimes>(v, times)),
              m);
          REQUIRE(run);
          CHECK(run->makespan >= *std::max_element(run->busy.begin(), run->busy.end()));
        }
}

/// Ends of all passes, found by going over the orders again and again.
double slow_makespan(const std::vector<std::vector<Slot>>& orders,
                     const std::vector<std::vector<test::PassTimes>>& times) {
  const std::size_t p = orders.size(), v = times[0].size();
  std::map<std::tuple<Pass, std::size_t, std::uint32_t>, double> ends;
  double last = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 0; s < p; ++s) {
      double clock = 0;
      for (const Slot& slot : orders[s]) {
        const std::size_t place = slot.chunk * p + s;
        double arrival = 0;
        const bool forward = slot.pass == Pass::kForward;
        if (forward ? place > 0 : slot.pass == Pass::kBackward && place + 1 < p * v) {
          const std::size_t from = forward ? place - 1 : place + 1;
          const auto found = ends.find({slot.pass, from, slot.microbatch});
          if (found == ends.end()) break;
          const test::PassTimes& sender = times[from % p][from / p];
          arrival = found->second + (forward ? sender.send_forward : sender.send_backward).s();
        }
        const test::PassTimes& t = times[s][slot.chunk];
        const Seconds by_pass[] = {t.forward, t.backward, t.backward_weights, t.recompute};
        clock = std::max(clock, arrival) + by_pass[int(slot.pass)].s();
        double& end = ends[{slot.pass, place, slot.microbatch}];
        changed = changed || end != clock;
        end = clock;
        last = std::max(last, clock);
      }
    }
  }
  return last;
}

TEST_CASE("the makespan of uneven stages is the longest path") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::uint32_t p = one_of(random, {1u, 2u, 3u, 4u, 5u});
    const std::uint32_t v = p > 1 ? one_of(random, {1u, 2u, 3u}) : 1;
    const std::uint32_t m = p * one_of(random, {1u, 2u, 3u});
    const Schedule schedule = v > 1 ? Schedule::kInterleaved
                                    : one_of(random, {Schedule::kGpipe, Schedule::k1f1b,
                                                      Schedule::kZeroBubble, Schedule::kShifted});
    std::uniform_real_distribution<double> time(0, 5);
    std::vector<std::vector<test::PassTimes>> times(p);
    std::vector<std::vector<Slot>> orders;
    std::vector<std::span<const Slot>> spans;
    for (std::uint32_t s = 0; s < p; ++s) {
      for (std::uint32_t c = 0; c < v; ++c) {
        const auto some = [&] { return Seconds::ms(time(random)); };
        times[s].push_back({some(), some(), some(), some(), some(), some()});
      }
      orders.push_back(order_of(schedule, {p, m, v}, s, true));
    }
    for (const std::vector<Slot>& order : orders) spans.emplace_back(order);
    const auto run = test::run_pipeline(spans, times, m);
    REQUIRE(run);
    CHECK(run->makespan.s() == Approx(slow_makespan(orders, times)).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace rehearse::strategies
