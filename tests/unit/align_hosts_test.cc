// Clocks of several hosts, with known offsets, drifts, noise and wrong samples, found again.
#include <random>

#include <catch2/catch.hpp>

#include "profiler/trace/align.h"
#include "tests/support/trace_builder.h"

namespace rehearse::trace {
namespace {

struct HostClock {
  double offset_us;
  double drift;
};

struct Scene {
  std::vector<HostClock> hosts;
  int ranks_per_host = 2;
  int collectives = 200;
  double every_us = 50'000;  // on average
  double noise_us = 3;       // of the ends
  double outliers = 0;       // share of ends that are anywhere within 20 ms
  int missing_first = 0;     // collectives that the last host's recording lacks at its begin
  bool grouped = false;      // collectives of each two neighbouring hosts only
};

/// What clocks that run as `scene` says show of one job. The first host's is the true one.
Trace recorded(const Scene& scene, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> true_ends;
  double now = 1000;
  for (int k = 0; k < scene.collectives; ++k) {
    now += scene.every_us * std::uniform_real_distribution<>(0.5, 1.5)(random);
    true_ends.push_back(now);
  }
  Trace trace;
  for (std::size_t h = 0; h < scene.hosts.size(); ++h)
    for (int r = 0; r < scene.ranks_per_host; ++r) {
      test::RankBuilder rank(trace);
      rank.rank().info.host = "host" + std::to_string(h);
      const auto shown = [&](double t) {
        return t + scene.hosts[h].offset_us + scene.hosts[h].drift * t;
      };
      const bool last = h + 1 == scene.hosts.size();
      for (std::size_t k = last ? static_cast<std::size_t>(scene.missing_first) : 0;
           k < true_ends.size(); ++k) {
        // Odd ones are of hosts 0 and 1, even ones of 1 and 2, and so on.
        const std::size_t pair = k % (scene.hosts.size() - 1);
        if (scene.grouped && h != pair && h != pair + 1) continue;
        double end = true_ends[k] + std::normal_distribution<>(0, scene.noise_us)(random);
        if (std::uniform_real_distribution<>()(random) < scene.outliers)
          end += std::uniform_real_distribution<>(-20'000, 20'000)(random);
        const auto id = static_cast<std::uint32_t>(k + 1);
        const double start = shown(end - 100);
        rank.call("ncclLaunch", start - 30, 5, id);
        GpuOp& op = rank.kernel("ncclDevKernel_AllReduce", start, shown(end) - start, id);
        const Collective what{
            .kind = CollectiveKind::kAllReduce,
            .bytes_in = 1024,
            .group = trace.names.intern(scene.grouped ? "pair " + std::to_string(pair) : "all")};
        auto& collectives = trace.ranks.back().collectives;
        const auto at = std::find(collectives.begin(), collectives.end(), what);
        op.collective = CollectiveId(static_cast<std::size_t>(at - collectives.begin()));
        if (at == collectives.end()) collectives.push_back(what);
      }
    }
  return trace;
}

/// Largest distance of any true moment from where the clocks of the ranks now put it, us: ends of
/// the same kernels, whose median excludes the `noise`.
double worst_median_us(const Trace& trace) {
  double worst = 0;
  const Rank& first = trace.ranks.front();
  for (const Rank& rank : trace.ranks) {
    std::vector<double> off;
    const std::size_t missing = first.gpu_ops.size() - rank.gpu_ops.size();
    for (std::size_t k = 0; k < rank.gpu_ops.size(); ++k)
      off.push_back((rank.gpu_ops[k].end() - first.gpu_ops[k + missing].end()).seconds().us());
    const std::size_t quarter = off.size() / 4;
    // Begin and end apart: an offset that is right in the middle only is a wrong drift.
    for (auto [from, to] :
         {std::pair(std::size_t{0}, quarter), std::pair(off.size() - quarter, off.size())}) {
      std::vector<double> part(off.begin() + static_cast<std::ptrdiff_t>(from),
                               off.begin() + static_cast<std::ptrdiff_t>(to));
      std::nth_element(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2),
                       part.end());
      worst = std::max(worst, std::abs(part[part.size() / 2]));
    }
  }

  return worst;
}

TEST_CASE("offsets and drifts of hosts are found again") {
  const Scene scene{.hosts = {{0, 0}, {1'500, 20e-6}, {-800'000, -45e-6}}};
  Trace trace = recorded(scene, 1);
  align(trace);
  CHECK(worst_median_us(trace) < 2);
  CHECK_FALSE(trace.ranks[0].info.clock_fit);
  CHECK_FALSE(trace.ranks[1].info.clock_fit);
  for (std::size_t r = 2; r < trace.ranks.size(); ++r) {
    const HostClock& clock = scene.hosts[r / 2];
    REQUIRE(trace.ranks[r].info.clock_fit);
    const ClockFit& fit = *trace.ranks[r].info.clock_fit;
    // From the host's clock to the true one, so the other way round.
    CHECK(fit.drift == Approx(-clock.drift).margin(1e-6));
    CHECK(fit.residual.seconds().us() < 6);
    CHECK(fit.samples > 700);
  }
  // Ranks of one host were moved alike.
  CHECK(trace.ranks[2].info.clock_fit->offset == trace.ranks[3].info.clock_fit->offset);
}

TEST_CASE("time zero is the earliest row, however clocks were moved, and clock_base says when") {
  for (const double offset : {2'500.0, -2'500.0}) {
    Trace trace = recorded({.hosts = {{0, 0}, {offset, 0}}}, 2);
    for (Rank& rank : trace.ranks) rank.info.clock_base = Nanoseconds(1'700'000'000'000'000'000);
    const Nanoseconds end = trace.ranks[0].gpu_ops[9].end() + trace.ranks[0].info.clock_base;
    align(trace);
    Nanoseconds first(INT64_MAX);
    for (const Rank& rank : trace.ranks)
      for (const HostOp& op : rank.host_ops) first = std::min(first, op.start);
    CHECK(first == Nanoseconds(0));
    CHECK(trace.ranks[0].gpu_ops[9].end() + trace.ranks[0].info.clock_base == end);
  }
}

TEST_CASE("a quarter of wrong samples does not turn the fit") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    const Scene scene{.hosts = {{0, 0}, {40'000, 30e-6}}, .outliers = 0.13};  // of either rank
    Trace trace = recorded(scene, seed);
    align(trace);
    CHECK(worst_median_us(trace) < 3);
  }
}

/// Sums of gloo on threads of two ranks with a clock each, 7 ms apart. Either rank may come last, the
/// data move in 50 us, and on rank 1 the thread ends milliseconds later in `late` of the sums.
/// `apart` is how much later rank 1 starts the first of them.
Trace sums_on_busy_cores(double late, std::uint64_t seed, double& apart) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double to) { return std::uniform_real_distribution<>(0, to)(random); };
  struct Sum {
    double starts[2], ends[2];
  };
  std::vector<Sum> sums;
  for (int k = 0; k < 60; ++k) {
    const double t = 20'000.0 * k;
    Sum sum{.starts = {t + uniform(2'000), t + uniform(2'000)}, .ends = {}};
    sum.ends[0] = sum.ends[1] = std::max(sum.starts[0], sum.starts[1]) + 50;
    if (uniform(1) < late) sum.ends[1] += 1'000 + uniform(6'000);
    sums.push_back(sum);
  }
  apart = sums[0].starts[1] - sums[0].starts[0];
  Trace trace;
  for (int r = 0; r < 2; ++r) {
    test::RankBuilder rank(trace);
    rank.rank().info.source = std::to_string(r);
    rank.rank().collectives.push_back({.kind = CollectiveKind::kAllReduce, .bytes_in = 4096});
    for (const Sum& sum : sums)
      rank.host("gloo:all_reduce", sum.starts[r] + 7'000.0 * r, sum.ends[r] - sum.starts[r],
                HostKind::kAnnotation)
          .collective = CollectiveId(0);
  }
  return trace;
}

TEST_CASE("threads that end late on one rank do not move its clock") {
  for (const double late : {0.0, 0.3, 0.6, 0.7})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO("late " << late << ", seed " << seed);
      double apart = 0;
      Trace trace = sums_on_busy_cores(late, seed, apart);
      align(trace);
      CHECK(trace.ranks[1].info.clock_fit);
      const double found =
          (trace.ranks[1].host_ops[0].start - trace.ranks[0].host_ops[0].start).seconds().us();
      CHECK(std::abs(found - apart) < 60);  // the data move in 50 us
    }
}

TEST_CASE("a recording that begins later is matched by the distances of its collectives") {
  const Scene scene{.hosts = {{0, 0}, {3'000, 10e-6}}, .missing_first = 7};
  Trace trace = recorded(scene, 3);
  align(trace);
  CHECK(worst_median_us(trace) < 2);
}

TEST_CASE("hosts that share no group with the first host are aligned through hosts that do") {
  const Scene scene{.hosts = {{0, 0}, {5'000, 0}, {-9'000, 25e-6}, {70'000, 0}}, .grouped = true};
  Trace trace = recorded(scene, 4);
  align(trace);
  for (std::size_t r = 2; r < trace.ranks.size(); ++r) {
    INFO("rank " << r);
    REQUIRE(trace.ranks[r].info.clock_fit);
    // align moved all of them by the first row: only differences of offsets are known.
    CHECK(trace.ranks[r].info.clock_fit->residual.seconds().us() < 10);
  }
  const auto offset = [&](std::size_t r) {
    return trace.ranks[r].info.clock_fit->offset.seconds().us();
  };
  CHECK(offset(2) - offset(6) == Approx(65'000).margin(20));
}

TEST_CASE("few collectives over a short time give an offset and no drift") {
  const Scene scene{
      .hosts = {{0, 0}, {-2'000, 0}}, .collectives = 6, .every_us = 1000, .noise_us = 5};
  Trace trace = recorded(scene, 5);
  align(trace);
  REQUIRE(trace.ranks[2].info.clock_fit);
  CHECK(trace.ranks[2].info.clock_fit->drift == 0);
  CHECK(worst_median_us(trace) < 12);
}

TEST_CASE("nested events stay nested when a clock is stretched") {
  const Scene scene{.hosts = {{0, 0}, {10, 90e-6}}};
  Trace trace = recorded(scene, 6);
  Rank& rank = trace.ranks[2];
  const HostOp outer{.name = trace.names.intern("step"),
                     .thread = ThreadId(0),
                     .kind = HostKind::kAnnotation,
                     .start = Nanoseconds(0),
                     .duration = Nanoseconds(5'000'000'000)};
  HostOp inner = outer;
  inner.start = Nanoseconds(4'999'000'000);
  inner.duration = Nanoseconds(1'000'000);
  rank.host_ops.push_back(outer);
  rank.host_ops.push_back(inner);
  align(trace);
  const auto& ops = trace.ranks[2].host_ops;
  CHECK(ops[ops.size() - 2].end() == ops[ops.size() - 1].end());
  CHECK(ops[ops.size() - 2].duration < Nanoseconds(5'000'000'000));
}

TEST_CASE("hosts without a common collective keep their clocks") {
  Scene scene{.hosts = {{0, 0}, {10, 0}}, .collectives = 3};
  Trace few = recorded(scene, 7);
  align(few);
  CHECK_FALSE(few.ranks[2].info.clock_fit);
  // One host, many ranks: nothing to fit, however the ends differ.
  scene.hosts = {{0, 0}};
  scene.ranks_per_host = 3;
  scene.collectives = 100;
  scene.hosts.push_back({500, 0});
  Trace one = recorded(scene, 8);
  for (Rank& rank : one.ranks) rank.info.host = "same";
  const Trace before = one;
  align(one);
  CHECK_FALSE(one.ranks[4].info.clock_fit);
  CHECK(one.ranks[4].gpu_ops[5].start - one.ranks[0].gpu_ops[5].start ==
        before.ranks[4].gpu_ops[5].start - before.ranks[0].gpu_ops[5].start);
}

}  // namespace
}  // namespace rehearse::trace
