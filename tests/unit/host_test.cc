// The host's times of a transformer block, by implementation.
#include "models/host/host.h"

#include <catch2/catch.hpp>

namespace rehearse::host {
namespace {

double ms(Seconds time) { return time.s() * 1e3; }

TEST_CASE("host: an eager block with tensor parallelism is divided 1 : 1.3") {
  const BlockTimes times = block_times(implementation_named("eager"), 2, Sends::kNone);
  CHECK(ms(times.forward) == Approx(4.17 / 2.3));
  CHECK(ms(times.backward) == Approx(4.17 - 4.17 / 2.3));
}

TEST_CASE("host: the time of a block depends on the degrees of a plan") {
  const auto both = [](std::string_view name, std::uint32_t tensor, Sends sends) {
    const BlockTimes times = block_times(implementation_named(name), tensor, sends);
    return ms(times.forward + times.backward);
  };
  CHECK(both("eager", 1, Sends::kNone) == Approx(3.4));
  CHECK(both("eager", 1, Sends::kLinks) == Approx(3.4));
  CHECK(both("eager", 8, Sends::kLinks) == Approx(4.9));
  CHECK(both("compiled", 8, Sends::kNone) == Approx(1.04));
  // Only an implementation that was measured so takes longer over EFA: 4.17 + 8 · 2.39 ms.
  CHECK(both("eager", 8, Sends::kEfa) == Approx(4.9));
  CHECK(both("nanotron", 8, Sends::kLinks) == Approx(4.9));
  CHECK(both("nanotron", 8, Sends::kEfa) == Approx(23.29));
  CHECK(both("nanotron", 1, Sends::kEfa) == Approx(5.79));
}

TEST_CASE("host: every implementation has an interval around its value and a source") {
  CHECK(implementations().size() >= 3);
  for (const Implementation& each : implementations()) {
    CAPTURE(each.name);
    CHECK(each.layer > Seconds::s(0));
    CHECK(each.layer_tensor >= each.layer);
    CHECK(each.layer_pipeline >= each.layer_tensor);
    CHECK(each.fastest < 1);
    CHECK(each.slowest > 1);
    CHECK_FALSE(each.source.empty());
  }
  // A host that is not known may be as fast as recordings alone say.
  const Implementation& eager = implementation_named("eager");
  CHECK(ms(eager.layer_tensor) * eager.fastest < 3.4);
}

}  // namespace
}  // namespace rehearse::host
