// Checkpoints and interruptions: formulas by hand, and against a simulation of the thing itself.
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "cost/whole_job.h"

namespace rehearse::cost {
namespace {

constexpr Seconds s(double v) { return Seconds::s(v); }

// C = 60 s, M = 3 h: √(2 × 60 × 10800) = 1138.4 s; C/2M = 1/360; Daly: × (1 + 1/3 √(1/360) +
// 1/9/360) − 60.
TEST_CASE("intervals between checkpoints by Young and by Daly") {
  CHECK(young_interval(s(60), s(10800)).s() == Approx(1138.42).epsilon(1e-5));
  const double daly = 1138.42 * (1 + std::sqrt(1 / 360.0) / 3 + 1 / 3240.0) - 60;
  CHECK(daly_interval(s(60), s(10800)).s() == Approx(daly).epsilon(1e-5));
  CHECK(daly_interval(s(100), s(50)).s() == 50);  // C = 2 M: beyond its range
}

/// Work done in whole intervals, each with a checkpoint, under interruptions at random.
double simulated_slowdown(double every, double write, double restart, double between,
                          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> next(1 / between);
  constexpr int kIntervals = 20000;
  double clock = 0, until = next(random);
  const auto pass = [&](double length) {  // whether it ends before the next interruption
    if (until < length) {
      clock += until;
      until = next(random);
      return false;
    }
    clock += length;
    until -= length;
    return true;
  };
  for (int i = 0; i < kIntervals; ++i)
    while (!pass(every + write))
      while (!pass(restart)) {
      }
  return clock / (kIntervals * every);
}

TEST_CASE("the expected slowdown equals that of many simulated runs") {
  struct Case {
    double every, write, restart, between;
  };
  for (const Case& c : {Case{1000, 60, 300, 10800}, Case{600, 30, 600, 3600},
                        Case{2000, 200, 100, 1500}, Case{3600, 10, 0, 36000}}) {
    INFO(c.every << " " << c.between);
    const double expected = slowdown(s(c.every), {s(c.write), s(c.restart)}, s(c.between));
    // 20,000 intervals: the mean is known to 1 to 2 %.
    CHECK(simulated_slowdown(c.every, c.write, c.restart, c.between, 7) ==
          Approx(expected).epsilon(0.03));
  }
}

TEST_CASE("Daly's interval is within a percent of the best there is") {
  for (const double write : {5.0, 60.0, 600.0})
    for (const double between : {1800.0, 3.6e4, 1e6}) {
      const Checkpointing costs{s(write), s(300)};
      const double by_daly = slowdown(daly_interval(s(write), s(between)), costs, s(between));
      double best = by_daly;
      for (double every = 10; every < 1e6; every *= 1.02)
        best = std::min(best, slowdown(s(every), costs, s(between)));
      INFO(write << " " << between);
      CHECK(by_daly <= best * 1.01);
    }
}

// 10 interruptions in 500 instance hours: 50 h. Exact: χ² quantiles of 20 and 22 degrees are
// 10.851 and 33.924, so from 1000 / 33.924 = 29.5 h to 1000 / 10.851 = 92.2 h.
TEST_CASE("mean time between interruptions from a log") {
  const auto lives =
      parse_lifetimes("instances,held_h,interrupted\n4,50,1\n6,30,1\n3,40,0\n", "log.csv");
  REQUIRE(lives);
  const Estimate<Seconds> between = mean_time_between(*lives).value();
  CHECK(between.value.s() / 3600 == Approx(50));
  CHECK(between.low.s() / 3600 == Approx(1000 / 33.924).epsilon(1e-4));
  CHECK(between.high.s() / 3600 == Approx(1000 / 10.851).epsilon(1e-4));
  const Lifetime quiet[] = {{4, s(3600), false}};
  const auto none = mean_time_between(quiet);
  REQUIRE_FALSE(none);
  CHECK(to_string(none.error()).starts_with("no instance was interrupted in 4.00 h"));
  const auto odd = parse_lifetimes("instances,held_h,interrupted\n4,50,2\n", "log.csv");
  REQUIRE_FALSE(odd);
  CHECK(to_string(odd.error()).starts_with("log.csv:2: interrupted: is neither 0 nor 1"));
  const auto refused = [](const char* row) {
    const auto read =
        parse_lifetimes(std::string("instances,held_h,interrupted\n") + row + "\n", "log.csv");
    REQUIRE_FALSE(read);
    CHECK(read.error().diagnostics.size() == 1);
    return to_string(read.error());
  };
  CHECK(refused("1,0,1").starts_with("log.csv:2: held_h: is zero; hours, above zero"));
  CHECK(refused("0,5,1").starts_with("log.csv:2: instances: is zero; one at least"));
  CHECK(refused("0.05,5,1").starts_with("log.csv:2: instances: 0.05 is not a count"));
  CHECK(refused("1,5,0.5").starts_with("log.csv:2: interrupted: is neither 0 nor 1"));
  CHECK(refused("1,,0").starts_with("log.csv:2: held_h: is empty"));
}

struct Given {
  JobTime job{{s(10), s(9), s(12), Provenance::kExtrapolated}, 36000, Bytes::gb(95)};
  Place place{.rented = {{"p4d.24xlarge", 4}}, .region = "us-east-1"};
  Keeping keeping{};
  JobAccount account() const { return account_for_job(job, {}, place, keeping).value(); }
};

TEST_CASE("a job on demand takes the time of its steps and its stated checkpoints") {
  Given given;
  CHECK(given.account().time.value.s() == Approx(360000));
  CHECK(given.account().money->value.usd() == Approx(4 * 100 * 21.957642));
  CHECK_FALSE(given.account().checkpoints);
  // 95 GB over 4 links of 19 Gbit/s to storage, 9.5 GB/s: 10 s an hour.
  given.keeping.every = s(3600);
  const JobAccount kept = given.account();
  CHECK(kept.checkpoints->write.s() == Approx(10));
  CHECK(kept.time.value.s() == Approx(360000 * (1 + 10 / 3600.0)));
  // Two of them in the store as long as the job runs.
  const double months = kept.time.value.s() / 3600 / 730;
  CHECK(kept.storage.usd() == Approx(2 * 95 * 0.023 * months));
  CHECK(kept.money->value.usd() ==
        Approx(kept.time.value.s() / 3600 * 4 * 21.957642 + kept.storage.usd()));
}

TEST_CASE("requests to storage are paid for each step") {
  Given given;
  const Usd without = given.account().money->value;
  given.job.requests = Usd::usd(0.01);
  const JobAccount paid = given.account();
  CHECK(paid.storage.usd() == Approx(360));
  CHECK(paid.money->value.usd() == Approx(without.usd() + 360));
  CHECK_THAT(paid.notes.back(), Catch::Contains("for requests"));
}

TEST_CASE("a job on spot takes longer by the cost of interruptions") {
  Given given;
  given.place.market = Market::kSpot;
  const JobAccount unknown = given.account();
  CHECK(unknown.time.value.s() == Approx(360000));
  CHECK(unknown.notes.front().starts_with("interruptions are not counted"));
  const Seconds between = s(40 * 3600.0);  // of one; of the four, 10 h
  given.keeping.between = {between, between * 0.5, between * 2, Provenance::kRecorded};
  const JobAccount account = given.account();
  const Seconds every = daly_interval(s(10), s(36000));
  CHECK(account.checkpoints->every.s() == Approx(every.s()));
  CHECK(account.checkpoints->slowdown == Approx(slowdown(every, {s(10), s(300)}, s(36000))));
  CHECK(every.s() == Approx(842).epsilon(1e-3));  // as docs/concepts/recommending.md has it
  CHECK(account.checkpoints->slowdown == Approx(1.0325).epsilon(1e-4));
  CHECK(account.time.value.s() == Approx(360000 * account.checkpoints->slowdown));
  CHECK(account.time.high.s() == Approx(432000 * slowdown(every, {s(10), s(300)}, s(18000))));
  // Every 2 minutes: nothing gets done.
  given.keeping.between = {s(480), s(480), s(480), Provenance::kRecorded};
  given.keeping.every = s(3600);
  const auto hopeless = account_for_job(given.job, {}, given.place, given.keeping);
  REQUIRE_FALSE(hopeless);
  CHECK(to_string(hopeless.error()) ==
        "interruptions every 2.00 min are too frequent for any progress; fewer instances, other "
        "instances, or "
        "on-demand prices");
}

TEST_CASE("downloaded data costs money and energy") {
  Given given;
  const cluster::Gpu& gpu = **cluster::find_gpu("a100_sxm4_40");
  const PoweredDevices devices[] = {{"a100_sxm4_40", &gpu, 32, 0.5}};
  const JobAccount plain = account_for_job(given.job, devices, given.place, {}).value();
  const JobAccount fetched =
      account_for_job(given.job, devices, given.place, {.fetched = Bytes::gb(1000)}).value();
  // us-east-1 has no row of its own: the first of the provider's.
  CHECK((fetched.money->value - plain.money->value).usd() == Approx(90));
  CHECK((fetched.energy->value - plain.energy->value).kwh() == Approx(1));
  CHECK(fetched.carbon->value - plain.carbon->value == Approx(379.069));
}

}  // namespace
}  // namespace rehearse::cost
