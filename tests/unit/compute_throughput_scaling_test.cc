#include <catch2/catch.hpp>

#include "tests/validation/studies/throughput_scaling.h"

namespace rehearse::compute {
namespace {

using workload::Dtype;

Pace pace(const char* device, Dtype dtype = Dtype::kFp16) {
  const Result<Pace> p = pace_of(**cluster::find_gpu(device), dtype);
  REQUIRE(p);
  return *p;
}

Pace made(double arithmetic, double memory, double issue) {
  return {.arithmetic = arithmetic, .memory = memory, .issue = issue, .vendor = "nvidia"};
}

TEST_CASE("speeds are relative to A100") {
  for (const Dtype dtype : {Dtype::kFp16, Dtype::kFp32}) {
    const Pace a100 = pace("a100_sxm4_80", dtype);
    CHECK(a100.arithmetic == Approx(1));
    CHECK(a100.memory == Approx(1));
    CHECK(a100.issue == Approx(1));
  }
  const Pace h100 = pace("h100_sxm5_80");
  CHECK(h100.arithmetic == Approx(312 / 989.4));
  CHECK(h100.memory == Approx(2039.0 / 3350));
  CHECK(h100.issue == Approx(108 * 1.41 / (132 * 1.98)));
}

TEST_CASE("FP32 is TF32 on devices that have it") {
  CHECK(pace("h100_sxm5_80", Dtype::kFp32).arithmetic == Approx(156 / 494.7));
  CHECK(pace("v100_sxm2_16", Dtype::kFp32).arithmetic == Approx(156 / 15.7));
}

TEST_CASE("a device without a clock is refused") {
  const Result<Pace> p = pace_of(**cluster::find_gpu("b300"), Dtype::kFp16);
  REQUIRE_FALSE(p);
  CHECK(to_string(p.error()) ==
        "the catalog has no clock of 'b300'; a device whose clock is known");
}

TEST_CASE("from one device a job has the typical shares") {
  const KnownThroughput a100{made(1, 1, 1), 100};
  // 0.5 · 0.25 + 0.3 · 0.5 + 0.2 · 1 of the time.
  const Estimate<double> found = throughput_on(made(0.25, 0.5, 1), {&a100, 1},
                                               {.arithmetic = 0.5, .memory = 0.3, .issue = 0.2});
  CHECK(found.value == Approx(100 / 0.475));
  CHECK(found.low == Approx(found.value / 1.4));
  CHECK(found.high == Approx(found.value * 1.4));
  CHECK(found.provenance == Provenance::kExtrapolated);
  // And back again.
  const KnownThroughput there{made(0.25, 0.5, 1), found.value};
  CHECK(throughput_on(made(1, 1, 1), {&there, 1}, {.arithmetic = 0.5, .memory = 0.3, .issue = 0.2})
            .value == Approx(100));
}

TEST_CASE("generations that the law was not fitted to widen the interval") {
  const KnownThroughput k80{pace("k80", Dtype::kFp32), 10}, a100{pace("a100_sxm4_80"), 100};
  for (const char* device : {"v100_sxm2_16", "a100_sxm4_80"}) {
    const Estimate<double> found = throughput_on(pace(device, Dtype::kFp32), {&k80, 1});
    CHECK(found.high / found.value == Approx(2));
  }
  const Estimate<double> old = throughput_on(pace("v100_sxm2_16"), {&a100, 1});
  CHECK(old.high / old.value == Approx(2));
}

TEST_CASE("several devices determine what bounds a job") {
  // Bound by memory alone, whatever else devices have.
  std::vector<KnownThroughput> known;
  for (const Pace& p : {made(1, 1, 1), made(0.3, 1, 0.7), made(2, 0.5, 1), made(1, 2, 0.6),
                        made(0.2, 0.4, 2), made(3, 3, 0.5)})
    known.push_back({p, 100 / p.memory});
  const Estimate<double> found = throughput_on(made(0.25, 0.5, 1), known);
  // The draw to typical shares moves it by little.
  CHECK(found.value == Approx(200).epsilon(0.06));
  CHECK(found.high == Approx(found.value * 1.3));
  // The unit does not matter.
  for (KnownThroughput& k : known) k.throughput *= 1e6;
  CHECK(throughput_on(made(0.25, 0.5, 1), known).value == Approx(found.value * 1e6));
}

TEST_CASE("across vendors the interval is a factor of two") {
  const KnownThroughput a100{made(1, 1, 1), 100};
  Pace other = made(1, 1, 1);
  other.vendor = "amd";
  const Estimate<double> found = throughput_on(other, {&a100, 1});
  CHECK(found.value == Approx(100));
  CHECK(found.high == Approx(200));
}

TEST_CASE("shares are recovered from synthetic jobs") {
  const TimeShares truth{.arithmetic = 0.4, .memory = 0.35, .issue = 0.25};
  std::vector<std::vector<KnownThroughput>> jobs;
  for (const double scale : {1.0, 7.0}) {
    std::vector<KnownThroughput>& job = jobs.emplace_back();
    for (const Pace& p : {made(1, 1, 1), made(0.3, 1, 0.7), made(2, 0.5, 1), made(1, 2, 0.6)})
      job.push_back({p, scale / (truth.arithmetic * p.arithmetic + truth.memory * p.memory +
                                 truth.issue * p.issue)});
  }
  const TimeShares found = fit_shares(jobs);
  CHECK(found.arithmetic == Approx(0.4));
  CHECK(found.memory == Approx(0.35));
  CHECK(found.issue == Approx(0.25));
}

}  // namespace
}  // namespace rehearse::compute
