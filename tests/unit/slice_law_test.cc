// The law of a slice: the worked example of docs/concepts/sharing.md, what is recovered from
// measured steps, what is flagged and refused.
#include "models/sharing/slice_law.h"

#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "models/sharing/slice_rate.h"
#include "tests/validation/studies/sharing/unmeasured.h"

namespace rehearse::sharing {
namespace {

cluster::MigDevice device_of(const char* gpu) {
  auto device = cluster::mig_device(**cluster::find_gpu(gpu));
  REQUIRE(device);
  return std::move(*device);
}

SliceRatio ratio(const char* gpu, const char* profile) {
  const cluster::MigDevice device = device_of(gpu);
  return ratio_of(device, *cluster::find_profile(device, profile));
}

JobLaw example() {
  return {.host = Seconds::ms(10),
          .fixed = Seconds::ms(2),
          .per_size = Seconds::ms(0.5),
          .alpha = 0.5,
          .beta = 0.1,
          .kappa = 1,
          .sharpness = 8,
          .residual = 0,
          .identified = true,
          .smallest = 1,
          .largest = 64,
          .spread = {0.06, 0.14, 0.10}};
}

std::vector<SweepPoint> sweep(const JobLaw& law, SliceRatio slice,
                              const std::vector<double>& sizes) {
  std::vector<SweepPoint> points;
  for (const double s : sizes) points.push_back({s, law.time(slice, s)});
  return points;
}

TEST_CASE("slice law: the worked example") {
  const SliceRatio one = ratio("a100_sxm4_40", "1g.5gb");
  CHECK(one.compute == 7);
  CHECK(one.memory == 8);
  const JobLaw law = example();
  // At batch 1: 2.5 ms on the whole GPU; 2 · (0.9 + 0.1 · 8) + 0.5 · (0.5 · 7 + 0.5 · 8) on 1g.
  CHECK(law.gpu({}, 1).ms() == Approx(2.5));
  CHECK(law.gpu(one, 1).ms() == Approx(3.4 + 3.75));
  CHECK(law.time({}, 1).ms() == Approx(10.0).epsilon(1e-4));
  CHECK(law.time(one, 1).ms() == Approx(10.08).epsilon(1e-3));
  CHECK(law.gpu(one, 32).ms() == Approx(3.4 + 120));
  CHECK(law.time({}, 32).ms() == Approx(18.02).epsilon(1e-3));
  CHECK(collocation_gain(law, one, 7, 1) == Approx(6.94).epsilon(1e-3));
  CHECK(collocation_gain(law, one, 7, 32) == Approx(1.022).epsilon(1e-3));
  CHECK(law.regime(one, 1) == Regime::kFloor);
  CHECK(law.regime(one, 4) == Regime::kCrossed);
  CHECK(law.regime(one, 32) == Regime::kBusy);
  // Nothing is shared with the whole GPU itself.
  CHECK(collocation_gain(law, {}, 1, 32) == 1);
}

TEST_CASE("slice law: another table of one job on slices of A100, from its 1g alone") {
  // Speeds against the whole GPU, published without the job: 1g 0.365, 2g 0.685, 3g 0.974. A whole
  // GPU at the host's floor and a GPU part such that 1g is right say the others.
  JobLaw law = example();
  law.host = Seconds::ms(1);
  law.fixed = Seconds::s(0);
  law.alpha = 0.5;
  law.kappa = 1.02;
  const auto speed = [&](const char* profile) {
    return law.time({}, 1) / law.time(ratio("a100_sxm4_80", profile), 1);
  };
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    law.per_size = Seconds::ms((low + high) / 2);
    (speed("1g.10gb") > 0.365 ? low : high) = (low + high) / 2;
  }
  CHECK(speed("1g.10gb") == Approx(0.365).epsilon(1e-3));
  CHECK(speed("2g.20gb") == Approx(0.685).epsilon(0.06));
  CHECK(speed("3g.40gb") == Approx(0.974).epsilon(0.02));
}

TEST_CASE("slice law: equal memory makes 4g less than 4/3 of 3g") {
  const JobLaw law = example();
  const double faster = law.time(ratio("a100_sxm4_40", "3g.20gb"), 512) /
                        law.time(ratio("a100_sxm4_40", "4g.20gb"), 512);
  CHECK(faster > 1.09);
  CHECK(faster < 1.20);
}

TEST_CASE("slice law: a job of the law is recovered from its sweep on the whole GPU") {
  const JobLaw truth = example();
  const SliceConstants constants = {.alpha = {0.5, 0.5, 0.5, 0.5},
                                    .beta_inference = 0.1,
                                    .beta_training = 0.2,
                                    .kappa = 1,
                                    .spread = {0.06, 0.14, 0.10}};
  const auto law = fit_whole(sweep(truth, {}, {1, 2, 4, 8, 16, 32, 64, 128}),
                             WorkKind::kTensorTransformer, false, constants);
  REQUIRE(law);
  CHECK(law->identified);
  CHECK(law->residual < 0.005);
  CHECK(law->host / truth.host == Approx(1).epsilon(0.01));
  CHECK(law->per_size / truth.per_size == Approx(1).epsilon(0.02));
  const SliceRatio two = ratio("a100_sxm4_40", "2g.10gb");
  for (const double size : {1.0, 8.0, 64.0}) {
    const Estimate<Seconds> got = predict(*law, two, size);
    CHECK(got.value / truth.time(two, size) == Approx(1).epsilon(0.03));
    CHECK(got.low < got.value);
    CHECK(got.value < got.high);
    CHECK(got.provenance == Provenance::kExtrapolated);
  }
  CHECK(predict(*law, {}, 16).provenance == Provenance::kInterpolated);
  CHECK(predict(*law, {}, 4096).provenance == Provenance::kExtrapolated);
}

TEST_CASE("slice law: one step on a slice reveals the time that the host hides on the whole GPU") {
  const JobLaw truth = example();
  const SliceRatio one = ratio("a100_sxm4_40", "1g.5gb"), two = ratio("a100_sxm4_40", "2g.10gb");
  const std::vector<SweepPoint> whole = sweep(truth, {}, {1, 2, 4, 8});
  const auto alone = fit_whole(whole, WorkKind::kTensorTransformer, false, shipped_constants());
  REQUIRE(alone);
  CHECK_FALSE(alone->identified);
  const Estimate<Seconds> wide = predict(*alone, two, 8);
  CHECK(wide.high / wide.low > 3);
  CHECK(wide.low <= truth.time(two, 8));
  CHECK(truth.time(two, 8) <= wide.high);
  const auto both = fit_with_slice(whole, one, sweep(truth, one, {4, 8}),
                                   WorkKind::kTensorTransformer, false, shipped_constants());
  REQUIRE(both);
  CHECK(both->identified);
  CHECK(both->time(two, 8) / truth.time(two, 8) == Approx(1).epsilon(0.10));
  CHECK(std::abs(both->time(two, 8) / truth.time(two, 8) - 1) <=
        std::abs(alone->time(two, 8) / truth.time(two, 8) - 1) + 0.01);
}

TEST_CASE("slice law: work that the host hides is tied to it and shows in a softer knee") {
  // H = 20 ms and A = 9 / (40 x 0.45) of it, 10 ms; at 128 samples the GPU takes 14.1 ms and the step
  // (20^2.5 + 14.1^2.5)^(1/2.5) = 23.0 ms: with a knee of 8 it would still be 20.2 ms.
  JobLaw truth = example();
  truth.host = Seconds::ms(20);
  truth.fixed = Seconds::ms(10);
  truth.per_size = Seconds::us(32);
  truth.sharpness = 2.5;
  truth.alpha = shipped_constants().alpha_of(WorkKind::kConvolutional);
  truth.beta = shipped_constants().beta_training;
  truth.kappa = shipped_constants().kappa;
  const auto law = fit_whole(sweep(truth, {}, {64, 128, 256, 512}), WorkKind::kConvolutional, true,
                             shipped_constants());
  REQUIRE(law);
  CHECK_FALSE(law->identified);
  CHECK(law->sharpness == 2.5);
  for (const char* profile : {"1g.5gb", "3g.20gb"})
    for (const double size : {64.0, 512.0}) {
      const SliceRatio slice = ratio("a100_sxm4_40", profile);
      CHECK(law->time(slice, size) / truth.time(slice, size) == Approx(1).epsilon(0.02));
    }
}

TEST_CASE("slice law: no slice is faster than the whole GPU, or slower than by its share") {
  const std::uint32_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  for (const char* gpu : {"a30", "a100_sxm4_80", "h100_sxm5_80", "b200_sxm_180"}) {
    const cluster::MigDevice device = device_of(gpu);
    for (int round = 0; round < 100; ++round) {
      JobLaw law = example();
      law.host = Seconds::ms(20 * unit(random));
      law.fixed = Seconds::ms(5 * unit(random));
      law.per_size = Seconds::ms(unit(random) + 1e-3);
      law.alpha = unit(random);
      law.beta = unit(random);
      law.kappa = 1 + 0.04 * unit(random);
      const double size = 1 + 200 * unit(random);
      for (std::uint32_t p = 0; p < device.profiles.size(); ++p) {
        const SliceRatio r = ratio_of(device, p);
        const double slower = law.time(r, size) / law.time({}, size);
        CHECK(slower >= 1 - 1e-9);
        CHECK(slower <= std::max(r.compute, r.memory) + 1e-9);
        // More work never takes less time.
        CHECK(law.time(r, size * 2) >= law.time(r, size));
      }
    }
  }
}

TEST_CASE("slice law: sequences, with attention's square") {
  JobLaw truth = example();
  truth.fixed = Seconds::s(0);
  const double quadratic = 1.0 / 1000;
  std::vector<SweepPoint> points;
  for (const double s : {16.0, 32.0, 64.0, 128.0, 256.0, 512.0})
    points.push_back({s, truth.time({}, s * (1 + quadratic * s))});
  const auto fit = fit_sequence(points, WorkKind::kTensorTransformer, false, shipped_constants());
  REQUIRE(fit);
  CHECK(fit->quadratic == Approx(quadratic).epsilon(0.15));
  CHECK(fit->law.time({}, fit->size_of(384)) / truth.time({}, 384 * (1 + quadratic * 384)) ==
        Approx(1).epsilon(0.01));
}

TEST_CASE("slice law: an invalid sweep is refused") {
  const SliceConstants c = shipped_constants();
  const auto refused = [&](const std::vector<SweepPoint>& points) {
    const auto law = fit_whole(points, WorkKind::kUnknown, true, c);
    REQUIRE_FALSE(law);
    return to_string(law.error());
  };
  CHECK(refused({}) ==
        "steps at 0 batch sizes on the whole GPU are too few to fit their growth; at least 3");
  CHECK(refused({{1, Seconds::ms(1)}, {2, Seconds::ms(1)}, {2, Seconds::ms(2)}})
            .starts_with("steps at 2 batch sizes"));
  CHECK(refused({{1, Seconds::ms(1)}, {2, Seconds::ms(0)}, {4, Seconds::ms(2)}})
            .find("is not a measurement; a batch and a time above zero") != std::string::npos);
  CHECK_FALSE(fit_with_slice({{1, Seconds::ms(1)}, {2, Seconds::ms(2)}, {4, Seconds::ms(4)}},
                             {7, 8}, {}, WorkKind::kUnknown, true, c));
}

TEST_CASE("slice memory: the context is smaller on a slice") {
  const cluster::MigDevice a100 = device_of("a100_sxm4_40");
  const std::uint32_t one = *cluster::find_profile(a100, "1g.5gb");
  // 98 - 14 = 84 multiprocessors of 4.27 MiB fewer: 2600 - 358.7 MiB.
  const SliceMemory small = memory_on_slice(a100, one, Bytes::mib(2600), 98);
  CHECK(small.used.value.mib() == Approx(2241.3).epsilon(1e-4));
  CHECK(small.usable.gib() == Approx(4.75));
  CHECK(small.fits);
  CHECK_FALSE(memory_on_slice(a100, one, Bytes::mib(5300), 98).fits);
}

TEST_CASE("slice law: a job described by its layers, by hand") {
  // One layer, width 768, 64 tokens: 64 · (24 · 768² + 4 · 768 · 64) = 918.6 MFLOP and 64 · 60 ·
  // 768 · 4 B = 11.8 MB.
  const DescribedJob job = encoder_job(WorkKind::kTensorTransformer, 1, 768, 64, 18);
  CHECK(job.flops.flop() == Approx(918.6e6).epsilon(1e-3));
  CHECK(job.bytes.b() == Approx(11.796e6).epsilon(1e-3));
  UnmeasuredConstants c = shipped_unmeasured();
  c.efficiency.fill(1);
  c.launch = Seconds::us(10);
  c.host = Seconds::us(30);
  const cluster::MigDevice a100 = device_of("a100_sxm4_40");
  const JobLaw law = describe(job, *a100.gpu, c);
  CHECK(law.per_size.us() == Approx(918.6 / 156 + 11796.0 / 1555).epsilon(1e-3));
  CHECK(law.fixed.us() == Approx(180));
  CHECK(law.host.us() == Approx(540));
  CHECK(law.alpha == Approx(5.888 / (5.888 + 7.586)).epsilon(1e-3));
  CHECK(law.beta == 0);
  // MIG off has 108 multiprocessors, MIG on 98.
  CHECK(ratio_of_gpu(a100, a100.whole).compute == Approx(108.0 / 98));
  CHECK(predict(law, {}, 1).provenance == Provenance::kDatasheet);
}

}  // namespace
}  // namespace rehearse::sharing
