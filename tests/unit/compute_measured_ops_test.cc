// What was measured of operations one by one, in the cost model.
#include <catch2/catch.hpp>

#include "models/compute/measured_ops.h"
#include "models/compute/op_cost.h"

namespace rehearse::compute {
namespace {

using workload::Dtype;
using workload::Extent;
using workload::Op;
using workload::OpKind;

Op product(double m, double n, double k) {
  return {.name = "p", .kind = OpKind::kGemm, .dtype = Dtype::kBf16, .m = m, .n = n, .k = k};
}
Op moving(OpKind kind, double bytes, double width = 0) {
  return {.name = "e", .kind = kind, .bytes = Bytes::b(bytes), .width = width};
}
OpSample sample(double us, bool cold) {
  return {Seconds::us(us), Seconds::us(us * 0.9), Seconds::us(us * 1.2), cold};
}
Estimate<Seconds> recorded(double us) {
  return {Seconds::us(us), Seconds::us(us), Seconds::us(us), Provenance::kRecorded};
}

TEST_CASE("a measured operation is found by exactly the properties that determine its time") {
  MeasuredOps ops(Bytes::mib(50));
  ops.add(product(128, 256, 512), sample(10, true));
  const auto found = ops.find(product(128, 256, 512));
  REQUIRE(found);
  CHECK(found->value.us() == Approx(10));
  CHECK(found->low.us() == Approx(9));
  CHECK(found->high.us() == Approx(12));
  CHECK(found->provenance == Provenance::kRecorded);
  CHECK_FALSE(ops.find(product(128, 512, 256)));
  Op other = product(128, 256, 512);
  other.dtype = Dtype::kFp16;
  CHECK_FALSE(ops.find(other));
  other = product(128, 256, 512);
  other.host = true;
  CHECK_FALSE(ops.find(other));
  CHECK_FALSE(ops.find(moving(OpKind::kElementwise, 128)));
}

TEST_CASE(
    "products use the cold measurement, others the hot one if the cache holds their operands") {
  MeasuredOps ops(Bytes::b(1000));
  ops.add(product(8, 8, 8), sample(10, false));
  ops.add(product(8, 8, 8), sample(14, true));
  CHECK(ops.find(product(8, 8, 8))->value.us() == Approx(14));
  CHECK(ops.find(product(8, 8, 8))->low.us() == Approx(9));
  CHECK(ops.find(product(8, 8, 8))->high.us() == Approx(14 * 1.2));
  for (const double bytes : {1000., 1001.}) {
    ops.add(moving(OpKind::kNorm, bytes, 10), sample(3, false));
    ops.add(moving(OpKind::kNorm, bytes, 10), sample(5, true));
  }
  CHECK(ops.find(moving(OpKind::kNorm, 1000, 10))->value.us() == Approx(3));
  CHECK(ops.find(moving(OpKind::kNorm, 1001, 10))->value.us() == Approx(5));
  CHECK_FALSE(ops.find(moving(OpKind::kNorm, 1000, 20)));
  CHECK_FALSE(ops.find(moving(OpKind::kSoftmax, 1000, 10)));
  Op several = moving(OpKind::kNorm, 1000, 10);
  several.kernels = 3;  // that each move these bytes, or not
  CHECK_FALSE(ops.find(several));
}

TEST_CASE("the median of several measurements counts, and one state replaces a missing one") {
  MeasuredOps ops({});
  for (const double us : {10., 30., 11.}) ops.add(product(8, 8, 8), sample(us, false));
  CHECK(ops.find(product(8, 8, 8))->value.us() == Approx(11));
  CHECK(ops.find(product(8, 8, 8))->high.us() == Approx(36));
}

TEST_CASE("convolutions with the same product are distinguished by their bytes") {
  MeasuredOps ops({});
  Op wide = product(100, 64, 576);
  wide.kind = OpKind::kConvolution;
  wide.bytes = Bytes::b(2 * (100 * 576 + 6400));  // 1 x 1 of 576 channels
  Op small = wide;
  small.bytes = Bytes::b(2 * (100 * 64 + 6400));  // 3 x 3 of 64
  ops.add(wide, sample(10, true));
  CHECK(ops.find(wide));
  CHECK_FALSE(ops.find(small));
}

TEST_CASE("the time of an op is recorded, else measured, else rescaled, else predicted") {
  const Result<OpCost> plain = OpCost::on("h100_sxm5_80", {});
  REQUIRE(plain);
  Op op = product(4096, 4096, 4096);
  op.samples = Extent::kM;
  Op half = op;
  divide(half, Extent::kM, 2);
  MeasuredOps measured(Bytes::mib(50));
  measured.add(half, sample(120, true));
  const OpCost cost = plain->with(measured);

  CHECK(cost.time(op).value == plain->predicted(op).value);
  CHECK(cost.time(half).value.us() == Approx(120));
  CHECK(cost.time(half).provenance == Provenance::kRecorded);

  op.measured = recorded(200);
  CHECK(cost.time(op).value.us() == Approx(200));
  Op halved = op, quarter = op;
  divide(halved, Extent::kM, 2);
  divide(quarter, Extent::kM, 4);
  CHECK(cost.time(halved).value.us() == Approx(120));
  CHECK(cost.time(quarter).value == plain->time(quarter).value);
  half.measured = recorded(130);  // the trace's own wins for the same key
  CHECK(cost.time(half).value.us() == Approx(130));
}

TEST_CASE("the ratio of a job to a benchmark comes from operations in both") {
  MeasuredOps ops({});
  workload::Workload recorded_job;
  workload::Layer layer{.name = "l"};
  for (const auto& [m, in_job] :
       {std::pair(64., 11.), std::pair(128., 24.), std::pair(256., 60.)}) {
    ops.add(product(m, 8, 8), sample(m / 6.4, true));  // 10, 20, 40 us
    Op op = product(m, 8, 8);
    op.measured = recorded(in_job);
    layer.forward.push_back(op);
  }
  recorded_job.layers.push_back(layer);
  CHECK(ops.learn(recorded_job).both == 3);
  REQUIRE(ops.in_job(OpKind::kGemm));
  CHECK(*ops.in_job(OpKind::kGemm) == Approx(1.2));
  CHECK_FALSE(ops.in_job(OpKind::kNorm));

  ops.add(product(512, 8, 8), sample(80, true));
  const OpCost cost = OpCost::on("h100_sxm5_80", {.gemm = 1.5})->with(ops);
  CHECK(cost.time(product(512, 8, 8)).value.us() == Approx(80 * 1.2));  // not 1.5
  MeasuredOps unlearnt({});
  unlearnt.add(product(512, 8, 8), sample(80, true));
  CHECK(OpCost::on("h100_sxm5_80", {.gemm = 1.5})
            ->with(unlearnt)
            .time(product(512, 8, 8))
            .value.us() == Approx(80 * 1.5));
}

TEST_CASE("a measurement of several times the recorded time is ignored") {
  MeasuredOps ops({});
  ops.add(product(64, 8, 8), sample(10, true));
  ops.add(moving(OpKind::kNorm, 1000, 10), sample(5, true));
  workload::Workload recorded_job;
  Op op = product(64, 8, 8);
  op.measured = recorded(31);
  recorded_job.layers.push_back({.name = "l", .forward = {op}});
  const MeasuredOps::Learnt learnt = ops.learn(recorded_job);
  CHECK(learnt.unlike == std::vector<OpKind>{OpKind::kGemm});
  CHECK_FALSE(ops.find(product(64, 8, 8)));
  CHECK(ops.find(moving(OpKind::kNorm, 1000, 10)));
}

}  // namespace
}  // namespace rehearse::compute
