// How fast a job is on a slice, by as much as is known of it.
#include "models/sharing/slice_rate.h"

#include <catch2/catch.hpp>

namespace rehearse {
namespace {

using namespace sharing;

cluster::MigDevice a100() {
  const auto gpu = cluster::find_gpu("a100_sxm4_40");
  REQUIRE(gpu);
  auto device = cluster::mig_device(**gpu);
  REQUIRE(device);
  return std::move(*device);
}

std::uint32_t profile(const cluster::MigDevice& device, std::string_view name) {
  const auto found = cluster::find_profile(device, name);
  REQUIRE(found);
  return *found;
}

TEST_CASE("no data: the share of the compute slices, up to the speed alone") {
  const cluster::MigDevice device = a100();
  const Estimate<double> one = rate_by_share(device, profile(device, "1g.5gb"));
  CHECK(one.value == Approx(1.0 / 7));
  CHECK(one.low == Approx(1.0 / 8));  // of the bandwidth
  CHECK(one.high == 1);
  const Estimate<double> three = rate_by_share(device, profile(device, "3g.20gb"));
  CHECK(three.value == Approx(3.0 / 7));
  CHECK(three.low == Approx(3.0 / 7));
  CHECK(three.provenance == Provenance::kDatasheet);
}

TEST_CASE("a step and its host: by hand") {
  const cluster::MigDevice device = a100();
  const SliceRatio ratio = ratio_of(device, profile(device, "1g.5gb"));  // 7 and 8
  const SliceConstants constants = shipped_constants();
  const auto rate = [&](double step_ms, double host_ms) {
    return rate_by_step(Seconds::ms(step_ms), Seconds::ms(host_ms), WorkKind::kUnknown, true, ratio,
                        constants);
  };
  // No host: all of the step is the GPU's, 0.5 x 7 + 0.5 x 8 = 7.5, over 1.02.
  CHECK(rate(10, 0).value == Approx(1.02 / 7.5));
  // If all of it were fixed, and a fifth of it waited for memory: 0.8 + 0.2 x 8 = 2.4 times as
  // long.
  CHECK(rate(10, 0).high == Approx(1 / 2.4 * 1.08));
  // The host decides, and the GPU has nothing to do.
  CHECK(rate(10, 10).value == Approx(1));
  // Between, a longer host loses less.
  double before = 0;
  for (const double host : {0.0, 5.0, 9.0, 9.9, 9.99, 10.0}) {
    const Estimate<double> r = rate(10, host);
    INFO(host);
    CHECK(r.value >= before);
    CHECK(r.low <= r.value);
    CHECK(r.value <= r.high);
    CHECK(r.high <= 1);
    before = r.value;
  }
}

TEST_CASE("a law: the time on the whole GPU over that on the slice") {
  const cluster::MigDevice device = a100();
  const SliceRatio ratio = ratio_of(device, profile(device, "2g.10gb"));
  const auto law = fit_whole({{1, Seconds::ms(10)}, {16, Seconds::ms(20)}, {64, Seconds::ms(80)}},
                             WorkKind::kTensorTransformer, false, shipped_constants());
  REQUIRE(law);
  const Estimate<double> small = rate_by_law(*law, ratio, 1), large = rate_by_law(*law, ratio, 64);
  CHECK(small.value > 0.95);
  CHECK(large.value == Approx(law->time({}, 64) / law->time(ratio, 64)));
  CHECK(large.value < 0.35);
  CHECK(large.low < large.value);
}

}  // namespace
}  // namespace rehearse
