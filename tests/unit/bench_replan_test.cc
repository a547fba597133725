// Between shapes of benchmarks and operations of workloads; what a re-plan has to measure.
#include <set>

#include <catch2/catch.hpp>

#include "cli/calibrate/op_timings.h"
#include "models/workload/lift.h"
#include "profiler/bench/shape_file.h"
#include "tests/support/lift_builder.h"

namespace rehearse::cli {
namespace {

using bench::Shape;
using workload::Dtype;
using workload::Extent;
using workload::Op;
using workload::OpKind;

Shape shape(std::string_view op, const bench::NamedExtents& extents, std::string_view dtype = {},
            std::string_view layout = {}) {
  Result<Shape> made = bench::make_shape(op, extents, dtype, layout);
  INFO((made ? "" : to_string(made.error())));
  REQUIRE(made);
  return *made;
}

TEST_CASE("a shape and its operation agree in work and bytes") {
  std::size_t checked = 0;
  for (const Shape& each : bench::default_shapes()) {
    const std::optional<Op> op = op_of(each);
    if (!op) continue;
    INFO(each.op << " " << each.text());
    ++checked;
    CHECK(flops_of(*op).flop() * (op->causal ? 0.5 : 1) == Approx(bench::flops_of(each).flop()));
    if (each.op == "gemm" && each.dtype == "fp8") continue;  // whose result is wider
    if (each.op == "conv" || op->kind != OpKind::kConvolution)
      CHECK(bytes_of(*op).b() == Approx(bench::bytes_of(each).b()));
  }
  CHECK(checked > 100);
}

TEST_CASE("an operation is identified by its shape") {
  Op op{.name = "p", .kind = OpKind::kGemm, .dtype = Dtype::kFp16, .m = 12, .n = 34, .k = 56};
  CHECK(shape_of(op, 4) == shape("gemm", {{"m", 12}, {"n", 34}, {"k", 56}}, "fp16"));
  op = {.name = "a", .kind = OpKind::kAttention, .batch = 64, .m = 128, .n = 128, .k = 64};
  CHECK(shape_of(op, 4) ==
        shape("attention",
              {{"batch", 4}, {"heads", 16}, {"queries", 128}, {"keys", 128}, {"head_size", 64}},
              "bf16", "full"));
  op = {.name = "n",
        .kind = OpKind::kNorm,
        .dtype = Dtype::kTf32,
        .bytes = Bytes::b(8 * 40),
        .width = 10};
  CHECK(shape_of(op, 4) == shape("norm", {{"rows", 4}, {"width", 10}}, "fp32"));
  op.width = 9;  // no whole rows
  CHECK_FALSE(shape_of(op, 4));
  op.kind = OpKind::kGather;
  CHECK_FALSE(shape_of(op, 4));
  op = {.name = "p", .kind = OpKind::kGemm, .m = 12.5, .n = 34, .k = 56};
  CHECK_FALSE(shape_of(op, 4));
}

/// The operation of a convolution as lifting gives it: with the weights among its bytes.
Op lifted(const Shape& s) {
  Op op = *op_of(s);
  op.name = s.op == "conv" ? "convolution" : "convolution_backward";
  op.weight_gradient = s.op == "conv_weight";
  op.bytes = bench::bytes_of(s);
  return op;
}

TEST_CASE("a lifted convolution has its filter, stride and padding") {
  std::size_t checked = 0;
  for (const Shape& each : bench::default_shapes()) {
    if (each.rule().family != bench::Family::kConv) continue;
    const std::optional<Shape> found = shape_of(lifted(each), static_cast<double>(each["images"]));
    INFO(each.op << " " << each.text());
    REQUIRE(found);
    INFO(found->text());
    CHECK(found->op == each.op);
    for (const char* extent : {"images", "channels", "height", "filters", "filter_width"})
      CHECK((*found)[extent] == each[extent]);
    const bench::ConvResult a = bench::conv_result(*found), b = bench::conv_result(each);
    CHECK(a.height == b.height);
    // Its own measurement is then found for it.
    std::vector<std::string> notes;
    const trace::OpTiming timing{.op = found->op,
                                 .shape = found->text(),
                                 .dtype = found->dtype,
                                 .layout = found->layout,
                                 .cold = true,
                                 .device = "NVIDIA H100 80GB HBM3",
                                 .median = Seconds::us(7)};
    const MeasuredByDevice measured = measured_ops_of(std::span(&timing, 1), notes);
    REQUIRE(measured.contains("h100_sxm5_80"));
    CHECK(measured.find("h100_sxm5_80")->second.find(lifted(each)));
    ++checked;
  }
  CHECK(checked == 40);
  Op odd = lifted(shape("conv", {{"images", 32},
                                 {"channels", 64},
                                 {"height", 56},
                                 {"width", 56},
                                 {"filters", 64},
                                 {"filter_height", 3},
                                 {"filter_width", 3}}));
  odd.bytes = odd.bytes * 1.1;  // of no square image
  CHECK_FALSE(shape_of(odd, 32));
}

TEST_CASE("timings that the model does not use are counted") {
  std::vector<trace::OpTiming> timings(4);
  for (trace::OpTiming& t : timings)
    t = {.op = "norm",
         .shape = "rows=4 width=8",
         .dtype = "bf16",
         .device = "NVIDIA H200",
         .median = Seconds::us(1)};
  timings[1].device = "Somebody's Accelerator";
  timings[2].partition = "1g.18gb";
  timings[3].shape = "rows=four";
  std::vector<std::string> notes;
  const MeasuredByDevice measured = measured_ops_of(timings, notes);
  REQUIRE(measured.size() == 1);
  CHECK(measured.begin()->second.size() == 1);
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].find("not in the catalog") != std::string::npos);
  CHECK(notes[1].find("MIG") != std::string::npos);
}

TEST_CASE("a re-plan measures what a recorded step becomes under other plans, each once") {
  workload::Workload recorded;
  recorded.samples = 4;
  workload::Layer layer{.name = "linear"};
  Op product{.name = "aten::mm",
             .kind = OpKind::kGemm,
             .dtype = Dtype::kBf16,
             .m = 512,
             .n = 1024,
             .k = 256};
  product.samples = Extent::kM;
  product.tensor = Extent::kN;
  layer.forward = {product, product};  // twice: measured once
  Op gradient = product;
  gradient.weight_gradient = true;
  gradient.m = 1024;
  gradient.k = 512;
  gradient.n = 256;
  gradient.samples = Extent::kK;
  gradient.tensor = Extent::kM;
  layer.backward = {gradient, {.name = "g", .kind = OpKind::kGather, .m = 4, .n = 4, .k = 4}};
  layer.weights = {{.count = 256 * 1024}};
  layer.output = Bytes::b(512 * 1024 * 2);
  recorded.layers = {layer};
  const Replan replan = replan_shapes(recorded);
  CHECK(replan.without_shape == 1);
  std::set<std::string> products, sums;
  for (const Shape& each : replan.shapes)
    (each.op == "gemm" ? products : sums).insert(each.layout + " " + each.op + " " + each.text());
  CHECK(products.size() == 2 * 4 * 4);
  for (const char* wanted :
       {"nt gemm m=512 n=1024 k=256 batch=1", "nt gemm m=256 n=1024 k=256 batch=1",
        "nt gemm m=2048 n=128 k=256 batch=1", "tn gemm m=256 n=256 k=512 batch=1"})
    CHECK(products.contains(wanted));
  for (const char* wanted :
       {" all_reduce bytes=26214400 ranks=0", " reduce_scatter bytes=524288 ranks=0",
        " all_reduce bytes=1048576 ranks=0", " all_reduce bytes=4194304 ranks=0"})
    CHECK(sums.contains(wanted));
}

}  // namespace
}  // namespace rehearse::cli
