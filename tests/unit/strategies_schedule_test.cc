#include <catch2/catch.hpp>

#include "strategies/schedule.h"
#include "tests/support/pipeline_run.h"

namespace rehearse::strategies {
namespace {

using workload::Pass;
using workload::Slot;

struct Orders {
  std::vector<std::vector<Slot>> slots;
  std::vector<std::span<const Slot>> spans;
};

Orders orders_of(Schedule schedule, const PipelineShape& shape, bool recomputes = false) {
  Orders orders;
  for (std::uint32_t s = 0; s < shape.stages; ++s)
    orders.slots.push_back(order_of(schedule, shape, s, recomputes && s + 1 < shape.stages));
  for (const std::vector<Slot>& order : orders.slots) orders.spans.emplace_back(order);
  return orders;
}

test::PipelineRun run_of(Schedule schedule, const PipelineShape& shape,
                         const test::PassTimes& times, bool recomputes = false) {
  const Orders orders = orders_of(schedule, shape, recomputes);
  const std::vector<std::vector<test::PassTimes>> all(
      shape.stages, std::vector<test::PassTimes>(shape.chunks, times));
  const auto run = test::run_pipeline(orders.spans, all, shape.microbatches);
  REQUIRE(run);
  return *run;
}

std::string text_of(const std::vector<Slot>& order) {
  std::string text;
  for (const Slot& slot : order) {
    if (!text.empty()) text += ' ';
    text += "FBWR"[static_cast<int>(slot.pass)];
    text += std::to_string(slot.microbatch);
    if (slot.chunk > 0) text += "'";
  }
  return text;
}

TEST_CASE("orders of three stages and four microbatches") {
  const PipelineShape shape{.stages = 3, .microbatches = 4};
  CHECK(text_of(order_of(Schedule::kGpipe, shape, 1)) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(text_of(order_of(Schedule::k1f1b, shape, 0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text_of(order_of(Schedule::k1f1b, shape, 2)) == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(text_of(order_of(Schedule::kZeroBubble, shape, 0)) ==
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(text_of(order_of(Schedule::kZeroBubble, shape, 2)) ==
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  CHECK(text_of(order_of(Schedule::kShifted, shape, 1, true)) ==
        "F0 F1 R0 B0 F2 R1 B1 F3 R2 B2 R3 B3");
}

// Megatron-LM's schedule table for two stages, two chunks (' the second), four microbatches.
TEST_CASE("the interleaved order takes groups of microbatches through chunk after chunk") {
  const PipelineShape shape{.stages = 2, .microbatches = 4, .chunks = 2};
  CHECK(text_of(order_of(Schedule::kInterleaved, shape, 0)) ==
        "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  CHECK(text_of(order_of(Schedule::kInterleaved, shape, 1)) ==
        "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
}

TEST_CASE("as many microbatches as stages do not all run ahead") {
  // Stage 0 of two: (p - s - 1) 2 + (v - 1) p = 4 passes, which is all; stage 1: 2.
  const PipelineShape shape{.stages = 2, .microbatches = 2, .chunks = 2};
  CHECK(text_of(order_of(Schedule::kInterleaved, shape, 0)) == "F0 F1 F0' F1' B0' B1' B0 B1");
  CHECK(text_of(order_of(Schedule::kInterleaved, shape, 1)) == "F0 F1 F0' B0' F1' B1' B0 B1");
}

// Narayanan et al., SC21: bubble (p - 1)/m, and with v chunks (p - 1)/(m v).
TEST_CASE("equal stages and free messages leave the bubbles of the textbook") {
  const test::PassTimes times{.forward = Seconds::ms(1), .backward = Seconds::ms(2)};
  for (const std::uint32_t p : {1u, 2u, 4u, 7u})
    for (const std::uint32_t m : {p, 2 * p, 5 * p}) {
      INFO("p " << p << ", m " << m);
      const double bubble = double(p - 1) / m;
      CHECK(run_of(Schedule::kGpipe, {p, m}, times).bubble() == Approx(bubble).margin(1e-12));
      CHECK(run_of(Schedule::k1f1b, {p, m}, times).bubble() == Approx(bubble).margin(1e-12));
      if (p == 1) continue;
      for (const std::uint32_t v : {2u, 3u}) {
        INFO("v " << v);
        CHECK(run_of(Schedule::kInterleaved, {p, m, v}, times).bubble() ==
              Approx(bubble / v).margin(1e-12));
      }
    }
}

// Qi et al., ICLR 2024: (p - 1)(F + B - W) instead of (p - 1)(F + B + W), here a third.
TEST_CASE("ZB-H1 leaves a third of the bubble of 1f1b") {
  const test::PassTimes times{
      .forward = Seconds::ms(1), .backward = Seconds::ms(1), .backward_weights = Seconds::ms(1)};
  const test::PassTimes whole{.forward = Seconds::ms(1), .backward = Seconds::ms(2)};
  for (const std::uint32_t p : {2u, 4u, 8u})
    for (const std::uint32_t m : {p, 2 * p, 4 * p}) {
      INFO("p " << p << ", m " << m);
      const double bubble = run_of(Schedule::kZeroBubble, {p, m}, times).bubble();
      CHECK(bubble == Approx(double(p - 1) / (3 * m)));
      CHECK(run_of(Schedule::k1f1b, {p, m}, whole).bubble() == Approx(3 * bubble));
    }
}

// The last stage recomputes nothing, and elsewhere recomputation does not delay the gradient.
TEST_CASE("recomputing ahead moves recomputation into the bubble") {
  const Seconds f = Seconds::ms(1), b = Seconds::ms(2), r = Seconds::ms(1);
  for (const std::uint32_t p : {2u, 4u, 8u}) {
    const std::uint32_t m = 4 * p;
    const test::PassTimes times{.forward = f, .backward = b, .recompute = r};
    const test::PipelineRun shifted = run_of(Schedule::kShifted, {p, m}, times, true);
    const test::PipelineRun plain =
        run_of(Schedule::k1f1b, {p, m}, {.forward = f, .backward = b + r});
    INFO("p " << p);
    CHECK(plain.makespan.ms() == Approx((m + p - 1) * (f + b + r).ms()));
    CHECK(shifted.makespan <= m * (f + b + r) + (p - 1) * (f + b));
    CHECK(shifted.makespan < plain.makespan);
  }
}

TEST_CASE("messages between stages lengthen the path of the first microbatch in both directions") {
  const test::PassTimes times{.forward = Seconds::ms(1),
                              .backward = Seconds::ms(2),
                              .send_forward = Seconds::ms(0.25),
                              .send_backward = Seconds::ms(0.5)};
  // One microbatch through three stages: 3 · (1 + 2) + 2 · (0.25 + 0.5).
  CHECK(run_of(Schedule::k1f1b, {3, 1}, times).makespan.ms() == Approx(10.5));
}

TEST_CASE("orders that wait for each other have no end") {
  const std::vector<std::vector<test::PassTimes>> times(
      2, {{.forward = Seconds::ms(1), .backward = Seconds::ms(1)}});
  const std::vector<Slot> first{{Pass::kForward, 0, 0}, {Pass::kBackward, 0, 0}};
  const std::vector<Slot> reversed{{Pass::kBackward, 0, 0}, {Pass::kForward, 0, 0}};
  const std::vector<Slot> missing{{Pass::kForward, 0, 0}};
  const auto run = [&](const std::vector<Slot>& a, const std::vector<Slot>& b) {
    const std::span<const Slot> orders[] = {a, b};
    return test::run_pipeline(orders, times, 1);
  };
  CHECK(run(first, first));
  CHECK_FALSE(run(first, reversed));
  CHECK_FALSE(run(first, missing));
}

}  // namespace
}  // namespace rehearse::strategies
