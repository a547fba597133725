// The method of measuring, on devices whose law is known.
#include <cmath>
#include <functional>
#include <random>

#include <catch2/catch.hpp>

#include "profiler/bench/measure.h"

namespace rehearse::bench {
namespace {

/// A device whose clock all its subjects share: what a launch takes may depend on it.
struct FakeDevice {
  double clock = 0;  // s of device time
  std::mt19937 random{1};
};

struct Law {
  double mean = 100e-6, deviation = 0;        // s, ÷ mean
  std::function<double(double)> slower = {};  // factor, by the clock
  std::function<bool(double)> throttled = {}, capped = {};
  std::uint64_t fails_at = 0;  // batch; 0: never
};

class FakeSubject final : public Subject {
 public:
  FakeSubject(FakeDevice& device, Law law) : device_(device), law_(std::move(law)) {}

  Result<Batch> run(std::size_t launches) override {
    ++batches;
    if (law_.fails_at == batches) return fail("the launch failed");
    Batch batch;
    batch.throttled = law_.throttled && law_.throttled(device_.clock);
    batch.capped = law_.capped && law_.capped(device_.clock);
    batch.sm_clock_hz = 1.5e9;
    std::normal_distribution<double> noise(0, law_.deviation);
    double sum = 0;
    for (std::size_t i = 0; i < launches; ++i) {
      const double each = law_.mean * (law_.slower ? law_.slower(device_.clock) : 1) *
                          (batch.throttled ? 2 : 1) * (1 + noise(device_.random));
      sum += each;
      device_.clock += each;
    }
    most_launches = std::max(most_launches, launches);
    batch.busy = Seconds::s(sum);
    batch.samples = {Seconds::s(sum / static_cast<double>(launches))};
    return batch;
  }

  std::uint64_t batches = 0;
  std::size_t most_launches = 0;

 private:
  FakeDevice& device_;
  Law law_;
};

Measurement measure_one(FakeSubject& subject, const Method& method = {}) {
  Subject* const all[] = {&subject};
  return measure(all, method).front();
}

TEST_CASE("a quiet device is measured with the least samples, at its true time") {
  FakeDevice device;
  FakeSubject subject(device, {.mean = 40e-6});
  const Measurement m = measure_one(subject);
  REQUIRE(m.status);
  CHECK(m.summary.mean.us() == Approx(40));
  CHECK(m.summary.samples == Method().least_samples);
  CHECK(m.summary.half_width < 1e-9);
  CHECK(m.sm_clock_hz == 1.5e9);
  CHECK(m.dropped == 0);
  CHECK(device.clock > 0.1);  // warm before it was measured
  CHECK(device.clock < 0.15);
}

TEST_CASE("a batch has as many launches as fit in two milliseconds") {
  for (const auto& [mean, launches] :
       {std::pair(40e-6, 50), std::pair(1e-6, 128), std::pair(50e-3, 1)}) {
    FakeDevice device;
    FakeSubject subject(device, {.mean = mean});
    REQUIRE(measure_one(subject).status);
    CHECK(subject.most_launches == static_cast<std::size_t>(launches));
  }
}

TEST_CASE("sampling continues until the mean is known to one percent") {
  for (const double deviation : {0.05, 0.14}) {
    FakeDevice device;
    FakeSubject subject(device, {.mean = 2e-3, .deviation = deviation});
    Method method;
    method.longest = Seconds::s(100);
    const Measurement m = measure_one(subject, method);
    REQUIRE(m.status);
    CHECK(m.summary.half_width <= 0.01);
    CHECK(m.summary.mean.ms() == Approx(2).epsilon(0.02));
    // (1.96 deviation / 0.01)², as far as chance ends it earlier or later.
    const double expected = std::pow(1.96 * deviation / 0.01, 2);
    CHECK(static_cast<double>(m.summary.samples) > expected / 2);
    CHECK(static_cast<double>(m.summary.samples) < std::min(1001.0, expected * 2));
  }
}

TEST_CASE("time and samples are bounded, and the half width shows the remaining uncertainty") {
  FakeDevice device;
  FakeSubject noisy(device, {.mean = 2e-3, .deviation = 0.3});
  const Measurement by_time = measure_one(noisy);
  REQUIRE(by_time.status);
  CHECK(by_time.summary.half_width > 0.01);
  CHECK(by_time.summary.samples >= 240);
  CHECK(by_time.summary.samples <= 275);
  FakeSubject wild(device, {.mean = 2e-3, .deviation = 0.9});
  Method method;
  method.longest = Seconds::s(1000);
  CHECK(measure_one(wild, method).status.has_value() ==
        false);  // a time below zero is no time, and is not averaged in
  FakeSubject loud(device, {.mean = 2e-3, .deviation = 0.25});
  method.most_samples = 300;
  CHECK(measure_one(loud, method).summary.samples == 300);
}

TEST_CASE("an operation longer than the time limit is measured three times") {
  FakeDevice device;
  FakeSubject subject(device, {.mean = 2, .deviation = 0.001});
  const Measurement m = measure_one(subject);
  REQUIRE(m.status);
  CHECK(m.summary.samples == 3);
  CHECK(m.summary.mean.s() == Approx(2).epsilon(0.01));
}

TEST_CASE("the time in which clocks ramp up is not in the result") {
  FakeDevice device;
  // Five times as slow at first, at full speed after 300 ms.
  FakeSubject subject(device, {.mean = 100e-6, .slower = [](double clock) {
                                 return clock < 0.3 ? 5 - 4 * clock / 0.3 : 1.0;
                               }});
  const Measurement m = measure_one(subject);
  REQUIRE(m.status);
  CHECK(m.summary.median.us() == Approx(100).epsilon(0.02));
  CHECK(m.summary.mean.us() == Approx(100).epsilon(0.02));
}

TEST_CASE("a drift of the clock affects interleaved subjects equally") {
  const auto slower = [](double clock) { return 1 + clock; };  // 100 % in a second
  const Law short_law{.mean = 2e-3, .deviation = 0.02, .slower = slower},
      long_law{.mean = 4e-3, .deviation = 0.02, .slower = slower};
  Method method;
  method.longest_warm_up = Seconds::ms(100);
  method.half_width = 0;
  method.most_samples = 60;
  method.longest = Seconds::s(100);
  method.agreement = 10;  // no drift is one
  const auto ratio = [&](bool in_turn) {
    FakeDevice device;
    FakeSubject a(device, short_law), b(device, long_law);
    Subject *const both[] = {&a, &b}, *const first[] = {&a}, *const second[] = {&b};
    if (in_turn) {
      const std::vector<Measurement> m = measure(both, method);
      return m[1].summary.mean / m[0].summary.mean;
    }
    const Measurement before = measure(first, method).front();
    return measure(second, method).front().summary.mean / before.summary.mean;
  };
  CHECK(ratio(true) == Approx(2).epsilon(0.03));
  CHECK(ratio(false) > 2.3);  // one after the other
}

TEST_CASE("throttled batches are dropped and counted, capped ones count") {
  FakeDevice device;
  FakeSubject subject(device,
                      {.mean = 2e-3,
                       .deviation = 0.05,
                       .throttled = [](double clock) { return std::fmod(clock, 0.05) < 0.01; },
                       .capped = [](double) { return true; }});
  const Measurement m = measure_one(subject);
  REQUIRE(m.status);
  CHECK(m.dropped > 0);
  CHECK(m.summary.mean.ms() == Approx(2).epsilon(0.03));  // they took twice as long
  CHECK(m.capped == 1);
}

TEST_CASE("a device that is throttled throughout gives no time, and does not hang") {
  FakeDevice device;
  FakeSubject subject(device, {.mean = 1e-3, .throttled = [](double) { return true; }});
  const Measurement m = measure_one(subject);
  REQUIRE_FALSE(m.status);
  CHECK(to_string(m.status.error()).find("throttled throughout") != std::string::npos);
  CHECK(device.clock < 3);
}

TEST_CASE("a launch that fails ends its subject alone") {
  FakeDevice device;
  for (const std::uint64_t at : {1U, 5U, 200U}) {
    FakeSubject bad(device, {.mean = 1e-3, .deviation = 0.3, .fails_at = at}),
        good(device, {.mean = 1e-3, .deviation = 0.2});
    Subject* const both[] = {&bad, &good};
    const std::vector<Measurement> m = measure(both, {});
    REQUIRE_FALSE(m[0].status);
    CHECK(to_string(m[0].status.error()) == "the launch failed");
    CHECK(m[1].status);
  }
}

TEST_CASE("after a stop request, known results count and the others are marked as stopped") {
  FakeDevice device;
  FakeSubject quiet(device, {.mean = 1e-3}), noisy(device, {.mean = 1e-3, .deviation = 0.3});
  Subject* const both[] = {&quiet, &noisy};
  const std::vector<Measurement> early =
      measure(both, {}, [&] { return quiet.batches + noisy.batches > 3; });
  CHECK_FALSE(early[0].status);
  const std::vector<Measurement> later = measure(both, {}, [&] { return device.clock > 0.35; });
  REQUIRE(later[0].status);
  CHECK(later[0].summary.mean.ms() == Approx(1));
  CHECK(later[1].status);  // not yet to one per cent, which its half width tells
  CHECK(later[1].summary.half_width > 0.01);
}

TEST_CASE("nothing to measure is nothing measured") { CHECK(measure({}, {}).empty()); }

}  // namespace
}  // namespace rehearse::bench
