// Triggers: what is one, and when it fires.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "profiler/capture/trigger.h"

namespace rehearse::capture {
namespace {

using Kind = Trigger::Kind;

TEST_CASE("triggers are read with and without spaces") {
  struct Case {
    const char* text;
    Trigger trigger;
  };
  for (const Case& c :
       {Case{"step_time > p99", {Kind::kPercentile, 99000}},
        Case{"step_time>p99.9", {Kind::kPercentile, 99900}},
        Case{" step_time  >  p 50 ", {Kind::kPercentile, 50000}},
        Case{"step_time > 250 ms", {Kind::kLonger, 250000000}},
        Case{"step_time>2.5s", {Kind::kLonger, 2500000000}},
        Case{"step_time > 70 us", {Kind::kLonger, 70000}},
        Case{"step_time > 9 ns", {Kind::kLonger, 9}},
        Case{"step_time > 1.5x median", {Kind::kTimesMedian, 1500}},
        Case{"step_time>2xmedian", {Kind::kTimesMedian, 2000}},
        Case{"every 100", {Kind::kEvery, 100}}, Case{"every1", {Kind::kEvery, 1}}}) {
    INFO(c.text);
    Trigger read;
    CHECK(parse_trigger(c.text, read));
    CHECK(read == c.trigger);
  }
}

TEST_CASE("an invalid trigger is refused, and nothing changes") {
  const Trigger before{Kind::kEvery, 7};
  for (const char* text : {"",
                           "p99",
                           "step_time",
                           "step_time >",
                           "step_time > p",
                           "step_time > p0",
                           "step_time > p100",
                           "step_time > 250",
                           "step_time > 250 min",
                           "step_time > 0 ms",
                           "step_time > 0.1 ns",
                           "step_time > -1 ms",
                           "step_time < 250 ms",
                           "step_time > 1.5x",
                           "step_time > 0x median",
                           "step_time > 1.5x mean",
                           "every",
                           "every 0",
                           "every 1.5",
                           "every -3",
                           "every 99999999999",
                           "step_time > 1.2345 ms",
                           "step_time > . ms",
                           "step_time > 9999999999999999999 s",
                           "step_time > 99999999999999 s",
                           "step_time > p99 x",
                           "steptime > p99"}) {
    INFO(text);
    Trigger read = before;
    CHECK_FALSE(parse_trigger(text, read));
    CHECK(read == before);
  }
}

TEST_CASE("a quantile is at most 0.8 % above the true one, and never below") {
  const auto seed = GENERATE(1u, 2u, 3u, 4u);
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> counts(StepHistogram::kBuckets);
  StepHistogram histogram(counts.data());
  std::vector<std::uint64_t> times;
  const unsigned longest = 1 + static_cast<unsigned>(random() % 50);
  for (int i = 0; i < 1000; ++i) {
    times.push_back(random() >> (64 - longest) >> (random() % longest));
    histogram.add(times.back());
  }
  std::sort(times.begin(), times.end());
  for (const std::uint64_t share : {1u, 1000u, 50000u, 99000u, 99900u, 99999u}) {
    const std::uint64_t k = std::max<std::uint64_t>(1, (share * times.size() + 99999) / 100000);
    const std::uint64_t exact = times[k - 1];
    INFO("seed " << seed << ", share " << share << ", exact " << exact);
    const std::uint64_t estimate = histogram.quantile(share);
    CHECK(estimate >= exact);
    CHECK(static_cast<double>(estimate) <= static_cast<double>(exact) * (1 + 1.0 / 128) + 1);
  }
}

TEST_CASE("percentiles and medians wait for 30 steps, a step is compared with those before it") {
  std::vector<std::uint32_t> counts(StepHistogram::kBuckets);
  StepHistogram before(counts.data());
  const Trigger p99{Kind::kPercentile, 99000}, median{Kind::kTimesMedian, 1500};
  std::uint64_t limit = 1;
  for (int i = 0; i < 29; ++i) before.add(1000);
  CHECK_FALSE(fires(p99, before, 0, 5000, limit));
  CHECK(limit == 0);
  CHECK_FALSE(fires(median, before, 0, 5000, limit));
  CHECK(fires({Kind::kLonger, 4999}, before, 0, 5000, limit));
  CHECK(limit == 4999);
  CHECK_FALSE(fires({Kind::kLonger, 5000}, before, 0, 5000, limit));
  before.add(1000);
  // 1000 is counted with what is up to 1003: 1000 / 8 is 125 of 128 eighths.
  CHECK(fires(p99, before, 0, 1004, limit));
  CHECK(limit == 1003);
  CHECK_FALSE(fires(p99, before, 0, 1003, limit));
  CHECK(fires(median, before, 0, 1505, limit));
  CHECK(limit == 1504);
  CHECK_FALSE(fires(median, before, 0, 1504, limit));
}

TEST_CASE("head sampling goes by the number") {
  std::vector<std::uint32_t> counts(StepHistogram::kBuckets);
  const StepHistogram none(counts.data());
  std::uint64_t limit = 1;
  int fired = 0;
  for (std::uint64_t number = 0; number < 1000; ++number)
    fired += fires({Kind::kEvery, 100}, none, number, 1, limit);
  CHECK(fired == 10);
  CHECK_FALSE(fires({}, none, 0, 1, limit));
}

}  // namespace
}  // namespace rehearse::capture
