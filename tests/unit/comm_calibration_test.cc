// Calibration files, their fits, and how they are carried over.
#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "models/comm/fit.h"
#include "models/comm/framework_timing.h"
#include "models/comm/transfer.h"

namespace rehearse::comm {
namespace {

const char kFile[] = R"(calibration: 1
device: h100_sxm5_80
fabric: nvswitch
generation: hopper
links: 18
fitted: {source: test, rows: 3, residual: 0.05, from: 1 KiB, to: 1 GiB, ranks: [2, 8], kinds: [all_reduce]}
widths: {ring: [0.1, 0.1, 0.2, 0.1]}
ll: {call: 4 us, step: 1 us, ramp: 2 us, rate: 100 GB/s}
ll128: {call: 10 us, step: 2 us, rate: 300 GB/s}
simple: {call: 15 us, step: 3 us, rate: 350 GB/s, copy: 700 GB/s, q: 1, all_reduce_gain: 1.05}
)";

std::string replaced(std::string from, std::string to) {
  std::string text = kFile;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const Result<Calibration> read = parse_calibration(text, "x.yaml");
  REQUIRE_FALSE(read);
  return to_string(read.error());
}

TEST_CASE("a file is read, and written as it was read") {
  const Result<Calibration> read = parse_calibration(kFile, "x.yaml");
  INFO((read ? "" : to_string(read.error())));
  REQUIRE(read);
  CHECK(read->switched->simple.rate.gb_per_s() == Approx(350));
  CHECK(read->switched->ll.ramp.us() == Approx(2));
  CHECK(read->ring_widths[2] == Approx(0.2));
  const std::string text = to_yaml(*read);
  const Result<Calibration> again = parse_calibration(text, "y.yaml");
  REQUIRE(again);
  CHECK(to_yaml(*again) == text);
}

TEST_CASE("what is shipped survives being written and read, and prices alike") {
  REQUIRE(shipped_calibrations().size() == 8);
  for (const Calibration& c : shipped_calibrations()) {
    INFO(c.device);
    const std::string text = to_yaml(c);
    const Result<Calibration> again = parse_calibration(text, "again");
    INFO((again ? "" : to_string(again.error())));
    REQUIRE(again);
    CHECK(to_yaml(*again) == text);
    CHECK_FALSE(c.fitted.source.empty());
    CHECK_FALSE(c.fitted.rows_used.empty());
    CHECK(c.fitted.rows > 100);
    const Group group{.kind = CollectiveKind::kAllReduce, .ranks = 2};
    const auto a = CollectiveCost::resolve({.calibration = c}, group),
               b = CollectiveCost::resolve({.calibration = *again}, group);
    REQUIRE(a);
    for (double bytes = 1024; bytes < 1e9; bytes *= 3)
      CHECK(a->seconds(bytes) == Approx(b->seconds(bytes)).epsilon(1e-5));
  }
}

TEST_CASE("errors name line, key and what was expected, all at once") {
  CHECK(error_of(replaced("fabric: nvswitch", "fabric: nvswich")) ==
        "x.yaml:3:9: fabric: unknown value 'nvswich'; did you mean 'nvswitch'?");
  CHECK(error_of(replaced("calibration: 1", "calibration: 9")).find("version 9 is not known") !=
        std::string::npos);
  CHECK(error_of(replaced("call: 4 us", "call: 4")).find("ll.call") != std::string::npos);
  CHECK(error_of(replaced("q: 1,", "q: 0.5,")).find("simple.q: is out of range") !=
        std::string::npos);
  CHECK(error_of(replaced("kinds: [all_reduce]", "kinds: [all_reduc]")).find("did you mean") !=
        std::string::npos);
  CHECK(error_of(replaced("rate: 300 GB/s", "rate: -300 GB/s")).find("ll128.rate") !=
        std::string::npos);
  CHECK(error_of(replaced("ramp: 2 us", "rump: 2 us")).find("did you mean 'ramp'?") !=
        std::string::npos);
  const std::string several = error_of(replaced("links: 18\n", "links: 0\nfoo: 1\n"));
  CHECK(std::count(several.begin(), several.end(), '\n') == 1);
  CHECK(error_of("[1, 2]").find("not a mapping") != std::string::npos);
}

/// Rows that the forms of a calibration make exactly.
std::vector<MeasuredRow> rows_of(const Calibration& c, std::vector<std::uint32_t> ranks) {
  std::vector<MeasuredRow> rows;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    for (const std::uint32_t n : ranks) {
      const auto cost = CollectiveCost::resolve({.calibration = c}, {.kind = kind, .ranks = n});
      REQUIRE(cost);
      for (double size = 1024; size <= 1073741824; size *= 2)
        rows.push_back({kind, n, Bytes::b(size), Seconds::s(cost->seconds(size))});
    }
  return rows;
}

FitRequest request() {
  return {.device = "h100_sxm5_80", .generation = Generation::kHopper, .links = 18};
}

TEST_CASE("a fit to rows that the forms made gives their constants back") {
  const Calibration truth = *parse_calibration(kFile, "x.yaml");
  const Result<Calibration> fitted = fit(request(), rows_of(truth, {2, 4, 8}));
  REQUIRE(fitted);
  const SwitchedConstants &a = *fitted->switched, &b = *truth.switched;
  CHECK(a.ll.call.us() == Approx(b.ll.call.us()).epsilon(1e-3));
  CHECK(a.ll.step.us() == Approx(b.ll.step.us()).epsilon(1e-3));
  CHECK(a.ll.ramp.us() == Approx(b.ll.ramp.us()).epsilon(1e-3));
  CHECK(a.ll.rate.gb_per_s() == Approx(100).epsilon(1e-3));
  CHECK(a.simple.call.us() == Approx(15).epsilon(1e-2));
  CHECK(a.simple.step.us() == Approx(3).epsilon(1e-2));
  CHECK(a.simple.rate.gb_per_s() == Approx(350).epsilon(1e-2));
  CHECK(a.simple.copy.gb_per_s() == Approx(700).epsilon(1e-2));
  CHECK(a.simple.q == Approx(1));
  CHECK_FALSE(a.nvls);
  CHECK(fitted->fitted.residual < 1e-3);
  CHECK(fitted->fitted.envelope.ranks == std::vector<std::uint32_t>{2, 4, 8});
}

TEST_CASE("the exponent and reduction in the switch are found") {
  Calibration truth = *parse_calibration(kFile, "x.yaml");
  truth.switched->simple.q = 1.5;
  truth.switched->nvls = Nvls{Bytes::mib(32), 8, Seconds::us(70), ByteRate::gb_per_s(460)};
  const Result<Calibration> fitted = fit(request(), rows_of(truth, {2, 4, 8}));
  REQUIRE(fitted);
  CHECK(fitted->switched->simple.q == Approx(1.5));
  REQUIRE(fitted->switched->nvls);
  CHECK(fitted->switched->nvls->from.mib() == Approx(32));
  CHECK(fitted->switched->nvls->rate.gb_per_s() == Approx(460).epsilon(1e-2));
}

TEST_CASE("the copy of all_gather and the cost by the root of the size are found") {
  Calibration truth = *parse_calibration(kFile, "x.yaml");
  truth.switched->simple.gather_copy = ByteRate::gb_per_s(500);
  truth.switched->simple.fill = Seconds::us(20);
  const Result<Calibration> fitted = fit(request(), rows_of(truth, {2, 4, 8}));
  REQUIRE(fitted);
  const Simple& s = fitted->switched->simple;
  REQUIRE(s.gather_copy);
  CHECK(s.gather_copy->gb_per_s() == Approx(500).epsilon(1e-2));
  CHECK(s.copy.gb_per_s() == Approx(700).epsilon(1e-2));
  CHECK(s.fill.us() == Approx(20).epsilon(2e-2));
  CHECK(to_yaml(*parse_calibration(to_yaml(*fitted), "y.yaml")) == to_yaml(*fitted));
}

TEST_CASE("the order of rows does not matter") {
  const Calibration truth = *parse_calibration(kFile, "x.yaml");
  std::vector<MeasuredRow> rows = rows_of(truth, {2, 8});
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> noise(0.95, 1.05);
  for (MeasuredRow& r : rows) r.time = r.time * noise(random);
  const Result<Calibration> once = fit(request(), rows);
  const std::string first = to_yaml(*once);
  CHECK(to_yaml(*fit(request(), rows)) == first);
  std::shuffle(rows.begin(), rows.end(), random);
  const Result<Calibration> other = fit(request(), rows);
  for (double size = 1024; size < 1e9; size *= 4) {
    const Group group{.kind = CollectiveKind::kAllReduce, .ranks = 8};
    CHECK(CollectiveCost::resolve({.calibration = *once}, group)->seconds(size) ==
          Approx(CollectiveCost::resolve({.calibration = *other}, group)->seconds(size))
              .epsilon(1e-6));
  }
}

TEST_CASE("rows that cannot tell the constants are refused") {
  const Calibration truth = *parse_calibration(kFile, "x.yaml");
  std::vector<MeasuredRow> small;
  for (const MeasuredRow& r : rows_of(truth, {8}))
    if (r.size < Bytes::kib(64)) small.push_back(r);
  CHECK(to_string(fit(request(), small).error()).find("Simple protocol; at least 3") !=
        std::string::npos);
  CHECK_FALSE(fit(request(), {}));
  small.front().time = Seconds::s(0);
  CHECK_FALSE(fit(request(), small));
}

TEST_CASE("devices without rows are priced as their sibling, or not at all") {
  const auto at = [](const char* device, std::uint32_t ranks, Bytes size) {
    const Result<Calibrated> c = calibration_for(device);
    REQUIRE(c);
    return CollectiveCost::resolve(*c, {.kind = CollectiveKind::kAllReduce, .ranks = ranks})
        ->at(size);
  };
  const Price own = at("h100_sxm5_80", 8, Bytes::gib(1)),
              like = at("h200_sxm_141", 8, Bytes::mib(64));
  CHECK(at("h100_sxm5_80", 8, Bytes::mib(64)).time.provenance == Provenance::kInterpolated);
  CHECK(own.time.provenance == Provenance::kExtrapolated);  // beyond the measured sizes
  CHECK(like.time.provenance == Provenance::kDatasheet);
  CHECK(like.time.value == at("h100_sxm5_80", 8, Bytes::mib(64)).time.value);
  CHECK(like.time.high > at("h100_sxm5_80", 8, Bytes::mib(64)).time.high);
  // H800: 8 of 18 links. Measured once: 215 GB/s of bus bandwidth.
  const Price reduced = at("h800", 8, Bytes::gib(4));
  const double bus = 4 * 1.073741824 * 1.75 / reduced.time.value.s();
  CHECK(bus == Approx(215).epsilon(0.1));
  for (const char* device : {"l4", "mi300x", "a100_sxm4_80:3g.40gb", "p100_sxm2_16"}) {
    INFO(device);
    const Result<Calibrated> none = calibration_for(device);
    REQUIRE_FALSE(none);
    CHECK(to_string(none.error()).find("nccl-tests") != std::string::npos);
  }
  CHECK(to_string(calibration_for("h100_sxm5").error()).find("did you mean 'h100_sxm5_") !=
        std::string::npos);
}

TEST_CASE("one measured small collective sets the latencies") {
  const Calibrated before = *calibration_for("h100_sxm5_80");
  const Group group{.kind = CollectiveKind::kAllReduce, .ranks = 8};
  const Seconds measured = Seconds::us(32);
  const Result<Calibrated> after = anchored(before, group, Bytes::kib(8), measured);
  REQUIRE(after);
  // All but the wire: 8 KiB move in under a microsecond.
  CHECK(CollectiveCost::resolve(*after, group)->seconds(8192) == Approx(32e-6).epsilon(0.02));
  const double big = 1 << 30;
  CHECK(CollectiveCost::resolve(*after, group)->seconds(big) ==
        Approx(CollectiveCost::resolve(before, group)->seconds(big)).epsilon(0.05));
  CHECK_FALSE(anchored(before, group, Bytes::kib(8), Seconds::ms(30)));
}

TEST_CASE("to another generation neither NVLS nor the copy of all_gather is carried") {
  Calibration from = *parse_calibration(kFile, "x.yaml");
  from.switched->simple.gather_copy = ByteRate::gb_per_s(500);
  from.switched->nvls = Nvls{Bytes::mib(32), 8, Seconds::us(70), ByteRate::gb_per_s(460)};
  const Calibrated kin = carried_over(from, {"kin", Generation::kHopper, 18, 1}, 1.4);
  CHECK(kin.calibration.switched->nvls);
  CHECK(kin.calibration.ring_widths[0] == Approx(0.14));
  // Four times the NVLinks: wire 4 x 350 GB/s, copy sqrt(4) x 700 GB/s.
  const Calibrated other = carried_over(from, {"other", Generation::kBlackwell, 72, 4}, 1);
  const SwitchedConstants& s = *other.calibration.switched;
  CHECK_FALSE(s.nvls);
  CHECK_FALSE(s.simple.gather_copy);
  CHECK(s.simple.rate.gb_per_s() == Approx(1400));
  CHECK(s.simple.copy.gb_per_s() == Approx(1400));
  CHECK(s.simple.call.us() == Approx(15));
  CHECK(other.provenance == Provenance::kDatasheet);
}

TEST_CASE("a call inside a framework costs its overhead, half-widths add by squares") {
  const FrameworkTiming timing{.call = Seconds::us(40), .high = Seconds::us(80)};
  const Price bare{{Seconds::us(100), Seconds::us(70), Seconds::us(130), Provenance::kInterpolated},
                   Algorithm::kRing,
                   Protocol::kSimple,
                   12};
  // 140; sqrt(30^2 + 40^2) = 50 below and above.
  const Price timed = in_framework(bare, timing);
  CHECK(timed.time.value.us() == Approx(140));
  CHECK(timed.time.low.us() == Approx(90));
  CHECK(timed.time.high.us() == Approx(190));
  CHECK(timed.time.provenance == Provenance::kExtrapolated);
}

TEST_CASE("framework timing is read as it was written") {
  const std::string text = to_yaml(framework_timing());
  const Result<FrameworkTiming> timing = parse_framework_timing(text, "x.yaml");
  REQUIRE(timing);
  CHECK(to_yaml(*timing) == text);
  CHECK_FALSE(parse_framework_timing("framework_timing: 1\ncall: 9 us\nhigh: 3 us\n", "x.yaml"));
  CHECK(timing->fitted.rows > 1000);
}

}  // namespace
}  // namespace rehearse::comm
