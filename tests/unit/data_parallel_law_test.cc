#include "tests/validation/studies/throughput/data_parallel_law.h"

#include <catch2/catch.hpp>

namespace rehearse::cli {
namespace {

TEST_CASE("a step alone is affine between the batches that were measured") {
  const StepAlone alone({{32, Seconds::ms(60)}, {8, Seconds::ms(30)}, {16, Seconds::ms(40)}});
  CHECK(alone.at(8).ms() == Approx(30));
  CHECK(alone.at(12).ms() == Approx(35));
  CHECK(alone.at(24).ms() == Approx(50));
  CHECK(alone.at(64).ms() == Approx(100));
  CHECK(alone.at(4).ms() == Approx(25));
  CHECK(StepAlone({{8, Seconds::ms(30)}}).at(64).ms() == Approx(30));
}

TEST_CASE("beyond the measured batches a step stays possible") {
  // The line through both would be below zero at 1, and falls beyond 16.
  CHECK(StepAlone({{8, Seconds::ms(10)}, {16, Seconds::ms(40)}}).at(1).ms() == Approx(10.0 / 8));
  CHECK(StepAlone({{8, Seconds::ms(40)}, {16, Seconds::ms(30)}}).at(64).ms() == Approx(30));
}

TEST_CASE("the last bucket is summed after backward") {
  CHECK(late_share(Bytes::mib(6)) == 1);
  CHECK(late_share(Bytes::mib(26)) == 1);
  // 1 + 25 + 25 + 10 MiB.
  CHECK(late_share(Bytes::mib(61)) == Approx(10.0 / 61));
  CHECK(late_share(Bytes::mib(51)) == Approx(25.0 / 51));
}

TEST_CASE("a sum overlaps backward as far as possible") {
  const Seconds alone = Seconds::ms(90);  // backward is 60 of it
  CHECK(step_with_sum(alone, Seconds::s(0), 0.2).ms() == Approx(90));
  // 40 early during 60, slowed by 4; 10 late.
  CHECK(step_with_sum(alone, Seconds::ms(50), 0.2).ms() == Approx(90 + 4 + 10));
  // 30 forward, 160 early during 60, slowed by 6; 40 late.
  CHECK(step_with_sum(alone, Seconds::ms(200), 0.2).ms() == Approx(30 + 160 + 6 + 40));
  // Nothing early: all of it follows.
  CHECK(step_with_sum(alone, Seconds::ms(50), 1).ms() == Approx(140));
}

TEST_CASE("a measured step determines the time of its gradient sum") {
  const Seconds alone = Seconds::ms(90);
  for (const double late : {0.0, 0.2, 1.0})
    for (const double sum : {5.0, 50.0, 74.0, 76.0, 200.0}) {
      INFO(late << " " << sum);
      CHECK(sum_within(step_with_sum(alone, Seconds::ms(sum), late), alone, late).ms() ==
            Approx(sum));
    }
  CHECK(sum_within(Seconds::ms(80), alone, 0.2) == Seconds::s(0));
}

TEST_CASE("a ring on the link of a measured step reproduces the step") {
  const Seconds alone = Seconds::ms(90);
  GradientSum sum{
      .gradients = Bytes::mb(400), .late = 0.2, .s_per_byte = 0, .latency = Seconds::us(30)};
  sum.s_per_byte = s_per_byte_of(Seconds::ms(500), alone, 2, sum);
  CHECK(data_parallel_step(alone, sum, 2).value.ms() == Approx(500));
  // Four devices: 6 messages, 1.5 times the bytes of 2.
  CHECK((sum.over(4) - Seconds::us(180)).ms() ==
        Approx(1.5 * (sum.over(2) - Seconds::us(60)).ms()));
  const Estimate<Seconds> step = data_parallel_step(alone, sum, 4);
  CHECK(step.low < step.value);
  CHECK(step.high > step.value);
  CHECK(data_parallel_step(alone, sum, 1).value == alone);
  // A link that was measured among two is less sure among more.
  sum.unsure = unsure_beyond(2, 8);
  CHECK(sum.unsure == Approx((1 + 0.5 * 1.6 * 1.6) / 1.5));
  CHECK(unsure_beyond(4, 2) == 1);
  CHECK(data_parallel_step(alone, sum, 4).high > step.high);
  CHECK(data_parallel_step(alone, sum, 4).low < step.low);
  // A sum that backward hid leaves a link that costs its latency alone.
  sum.s_per_byte = s_per_byte_of(alone, alone, 2, sum);
  CHECK(sum.s_per_byte == 0);
  CHECK(sum.over(4).us() == Approx(180));
}

}  // namespace
}  // namespace rehearse::cli
