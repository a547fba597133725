// A recording as a workload: phases, conservation of device time, parameters, memory, refusals.
#include "models/workload/lift.h"

#include <map>

#include <catch2/catch.hpp>

#include "profiler/ingest/input.h"
#include "tests/support/data.h"
#include "tests/support/lift_builder.h"

namespace rehearse::workload {
namespace {

using test::StepBuilder;
using trace::Trace;

Trace read(const std::string& path) {
  const std::vector<std::filesystem::path> paths = {test::source_file(path)};
  Result<Trace> trace = ingest::read_inputs(paths, {});
  INFO((trace ? "" : to_string(trace.error())));
  REQUIRE(trace);
  return std::move(*trace);
}

Lifted lifted(const Trace& trace, LiftOptions options = {}) {
  Result<Lifted> result = lift(trace, options);
  INFO((result ? "" : to_string(result.error())));
  REQUIRE(result);
  return std::move(*result);
}

double us(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += op.measured->value.us();
  return sum;
}

/// Of all ops, the optimizer's too.
double us(const Workload& workload) {
  double sum = 0;
  for (const Layer& layer : workload.layers)
    sum += us(layer.forward) + us(layer.backward) + us(layer.recompute) + us(layer.step);
  return sum;
}

/// Device time launched in a step, straight from the rows.
double busy_us(const Trace& trace, const std::string& step) {
  const trace::Rank& rank = trace.ranks[0];
  Nanoseconds from{0}, to{0};
  std::map<std::uint32_t, Nanoseconds> called;
  for (const trace::HostOp& op : rank.host_ops) {
    if (trace.names[op.name] == step) {
      from = op.start;
      to = op.end();
    }
    if (op.correlation) called.insert_or_assign(*op.correlation, op.start);
  }
  Nanoseconds busy{0};
  for (const trace::GpuOp& op : rank.gpu_ops)
    if (const Nanoseconds at = called.at(*op.correlation); at >= from && at < to)
      busy += op.duration;
  return busy.seconds().us();
}

TEST_CASE("two linears: the worked example of docs/concepts/lifting.md") {
  const Trace trace = read("examples/recordings/two_linears.json");
  const Lifted l = lifted(trace);
  CHECK(l.step_name == "ProfilerStep#1");  // of 730, 732 and 728 us of device time
  CHECK(l.steps == 3);
  CHECK(l.shapes);
  CHECK(l.training);
  CHECK(l.step.us() == Approx(1000));
  CHECK(l.device.busy == Nanoseconds(730000));
  CHECK(l.device.layers == Nanoseconds(700000));
  CHECK(l.device.copies == Nanoseconds(30000));
  CHECK(l.kernels == 11);
  CHECK(l.idle_per_kernel.us() == Approx(270.0 / 11));

  const Workload& w = l.workload;
  CHECK(w.samples == 8);
  CHECK(w.parameters() == 1024 * 256 + 1024 + 256 * 1024 + 256);
  REQUIRE(w.layers.size() == 2);
  CHECK(w.layers[0].name == "linear 1");
  CHECK(us(w.layers[0].forward) == Approx(140));
  CHECK(us(w.layers[0].backward) == Approx(165));
  CHECK(us(w.layers[1].forward) == Approx(120));
  CHECK(us(w.layers[1].backward) == Approx(230));
  CHECK(us(w.layers[0].step) + us(w.layers[1].step) == Approx(45));

  const Op& first = w.layers[0].forward[0];
  CHECK(first.kind == OpKind::kGemm);
  CHECK(first.m == 512);
  CHECK(first.n == 1024);
  CHECK(first.k == 256);
  CHECK(first.samples == Extent::kM);
  CHECK(first.tensor == Extent::kN);  // a column
  CHECK(first.measured->value.us() == Approx(100));
  CHECK(first.measured->low.us() == Approx(98));
  CHECK(first.measured->high.us() == Approx(102));
  CHECK(w.layers[0].forward[1].tensor == Extent::kBytes);  // gelu, between the two
  const Op& second = w.layers[1].forward[0];
  CHECK(second.tensor == Extent::kK);  // a row

  // The input of the first layer needs no gradient: it has one backward product, that of weights.
  REQUIRE(w.layers[0].backward.size() == 2);
  const Op& weights = w.layers[0].backward[1];
  CHECK(weights.weight_gradient);
  CHECK(weights.k == 512);
  CHECK(weights.samples == Extent::kK);
  CHECK(weights.tensor == Extent::kM);
  const std::vector<Op>& back = w.layers[1].backward;
  REQUIRE(back.size() == 3);
  CHECK_FALSE(back[1].weight_gradient);
  CHECK(back[1].samples == Extent::kM);
  CHECK(back[1].tensor == Extent::kN);
  CHECK(back[2].weight_gradient);
  CHECK(back[2].tensor == Extent::kN);

  // Backward needs the input of gelu, and its result as the input of the second linear.
  const double hidden = 8 * 64 * 1024 * 4;
  CHECK(w.layers[0].saved_bytes() == Bytes::b(hidden));
  CHECK(w.layers[1].saved_bytes() == Bytes::b(hidden));
  CHECK(w.layers[1].saved[0].input);
  CHECK(w.layers[0].output == Bytes::b(hidden));
  CHECK(with_samples(w, 16).layers[0].forward[0].m == 1024);
}

TEST_CASE("device time is conserved to the nanosecond") {
  for (const char* path :
       {"examples/recordings/two_linears.json", "examples/recordings/two_gradients.json",
        "examples/recordings/three_steps.json"}) {
    INFO(path);
    const Trace trace = read(path);
    const Lifted l = lifted(trace);
    const DeviceTime& d = l.device;
    CHECK(d.busy == d.layers + d.copies + d.communication + d.unknown);
    CHECK(d.busy.seconds().us() == Approx(busy_us(trace, l.step_name)).epsilon(1e-12));
    CHECK(us(l.workload) == Approx(d.layers.seconds().us()).epsilon(1e-9));
  }
}

/// A linear and its backward, with or without numbers that pair them.
Trace one_linear(bool numbered) {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  for (std::uint32_t i = 0; i < 2; ++i)
    b.forward("aten::linear", "[[4, 16, 32], [32, 32], [32]]", 10 + i, 1 + i);
  for (std::uint32_t i = 2; i-- > 0;)
    b.backward("AddmmBackward0", numbered ? std::optional(1 + i) : std::nullopt, [&] {
      b.op("aten::mm", "[[64, 32], [32, 32]]", 20 + i, StepBuilder::kAutograd);
      b.op("aten::mm", "[[32, 64], [64, 32]]", 30 + i, StepBuilder::kAutograd);
      b.gradient("[32]");
      b.gradient("[32, 32]");
    });
  b.op("aten::_foreach_add_", "[[32, 32], [32, 32]]", 5);
  b.end_step();
  return trace;
}

TEST_CASE("backward goes to the layer of its forward operator, by number or in reverse order") {
  for (const bool numbered : {true, false}) {
    INFO(numbered);
    const Lifted l = lifted(one_linear(numbered));
    REQUIRE(l.workload.layers.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const Layer& layer = l.workload.layers[i];
      const double k = static_cast<double>(i);
      CHECK(us(layer.forward) == Approx(10 + k));
      CHECK(us(layer.backward) == Approx(50 + 2 * k));
      CHECK(layer.parameters() == 32 * 32 + 32);
      // Square: the extents do not tell; the gradient of inputs is computed first.
      REQUIRE(layer.backward.size() == 2);
      CHECK_FALSE(layer.backward[0].weight_gradient);
      CHECK(layer.backward[1].weight_gradient);
      CHECK(us(layer.step) == Approx(2.5));
    }
  }
}

TEST_CASE("recomputation of a checkpoint is distinguished from backward") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.forward("aten::linear", "[[4, 8, 16], [64, 16], [64]]", 10, 1);
  b.forward("aten::linear", "[[4, 8, 64], [16, 64], [16]]", 11, 2);
  b.backward("AddmmBackward0", 2, [&] {
    for (int i = 0; i < 2; ++i) {
      trace::HostOp& again = b.op(
          "aten::linear", i == 0 ? "[[4, 8, 16], [64, 16], [64]]" : "[[4, 8, 64], [16, 64], [16]]",
          12 + i, StepBuilder::kAutograd);
      again.sequence = 7 + i;
      again.forward_thread = 0;
    }
    b.op("aten::mm", "[[32, 16], [16, 64]]", 20, StepBuilder::kAutograd);
  });
  b.end_step();
  const Lifted l = lifted(trace);
  REQUIRE(l.workload.layers.size() == 2);
  CHECK(us(l.workload.layers[0].recompute) == Approx(12));
  CHECK(us(l.workload.layers[1].recompute) == Approx(13));
  CHECK(us(l.workload.layers[1].backward) == Approx(20));
}

TEST_CASE("calls of the update cover the parameters in the order of the layers") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.forward("aten::linear", "[[4, 8, 16], [40, 16], []]", 10, 1);
  b.forward("aten::linear", "[[4, 8, 40], [64, 40], []]", 11, 2);
  for (const std::uint32_t i : {2U, 1U})
    b.backward("AddmmBackward0", i, [&] {
      b.op("aten::mm", i == 1 ? "[[40, 32], [32, 16]]" : "[[64, 32], [32, 40]]", 20,
           StepBuilder::kAutograd);
      b.gradient(i == 1 ? "[40, 16]" : "[64, 40]");
    });
  // 640 and 2,560 parameters: one operator has a call for each matrix, the other one for both.
  b.op("aten::add_", "[[40, 16]]", 7);
  b.op("aten::add_", "[[64, 40]]", 11);
  b.op("aten::mul_", "[[3200]]", 50);
  b.end_step();
  const Lifted l = lifted(trace);
  REQUIRE(l.workload.layers.size() == 2);
  CHECK(us(l.workload.layers[0].step) == Approx(7 + 50 * 640 / 3200.0));
  CHECK(us(l.workload.layers[1].step) == Approx(11 + 50 * 2560 / 3200.0));
}

TEST_CASE("backward of a compiled graph is walked in reverse, product by product") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  trace::HostOp& graph = b.around("CompiledFunction", trace::HostKind::kOperator, [&] {
    for (int i = 0; i < 3; ++i) {
      b.op("aten::mm", "[[64, 32], [32, 32]]", 10 + i);
      b.op("triton_poi_fused_gelu_0", "[[64, 32], [64, 32]]", 1 + i);
    }
  });
  graph.sequence = 5;
  graph.forward_thread = 0;
  b.backward("CompiledFunctionBackward", 5, [&] {
    for (int i = 3; i-- > 0;) {
      b.op("aten::mm", "[[64, 32], [32, 32]]", 20 + i, StepBuilder::kAutograd);
      b.op("aten::mm", "[[32, 64], [64, 32]]", 30 + i, StepBuilder::kAutograd);
    }
  });
  b.end_step();
  const Lifted l = lifted(trace);
  REQUIRE(l.workload.layers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const double k = static_cast<double>(i);
    CHECK(us(l.workload.layers[i].forward) == Approx(11 + 2 * k));
    CHECK(us(l.workload.layers[i].backward) == Approx(50 + 2 * k));
  }
}

TEST_CASE("microbatches of a step are one pass, with the mean of their times") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  std::uint32_t sequence = 1;
  for (int pass = 0; pass < 3; ++pass) {
    const std::uint32_t first = sequence;
    for (int i = 0; i < 2; ++i)
      b.forward("aten::linear", "[[4, 8, 16], [16, 16], []]", 10 + i + 3 * pass, sequence++);
    for (std::uint32_t i = 2; i-- > 0;) {
      b.backward("MmBackward0", first + i,
                 [&] { b.op("aten::mm", "[[16, 32], [32, 16]]", 20 + i, StepBuilder::kAutograd); });
      // The first gradient is kept as it is, the others are added to it.
      if (pass > 0) b.op("aten::add_", "[[16, 16], [16, 16]]", 6, StepBuilder::kAutograd);
      b.gradient("[16, 16]");
    }
  }
  b.op("aten::_foreach_add_", "[[16, 16], [16, 16]]", 5);
  b.end_step();
  const Lifted l = lifted(trace);
  CHECK(l.microbatches == 3);
  CHECK(l.notes[1] == "3 microbatches per step: times are means over them");
  REQUIRE(l.workload.layers.size() == 2);
  double pass = 0, step = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const Layer& layer = l.workload.layers[i];
    const double k = static_cast<double>(i);
    CHECK(layer.parameters() == 256);
    CHECK(us(layer.forward) == Approx(13 + k));
    CHECK(us(layer.backward) == Approx(20 + k + 6 * 2.0 / 3));
    CHECK(us(layer.step) == Approx(2.5));
    pass += us(layer.forward) + us(layer.backward);
    step += us(layer.step);
  }
  CHECK(3 * pass + step == Approx(l.device.layers.seconds().us()));
}

TEST_CASE("gradients in flat shards do not identify parameters") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.forward("aten::linear", "[[4, 8, 16], [64, 16], []]", 10, 1);
  b.backward("MmBackward0", 1,
             [&] { b.op("aten::mm", "[[64, 32], [32, 16]]", 20, StepBuilder::kAutograd); });
  b.gradient("[256]");  // a quarter of 64 × 16
  b.end_step();
  const Lifted l = lifted(trace);
  CHECK(l.workload.parameters() == 64 * 16);
  CHECK(l.notes[1] ==
        "gradients are flat shards: parameters are counted from the operands of the forward pass");
}

TEST_CASE("gradients identify parameters: a tied matrix counts once, a frozen one is named") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  trace::HostOp& look = b.forward("aten::embedding", "[[100, 16], [4, 8]]", 3, 1);
  look.inputs = b.inputs("[[100, 16], [4, 8]]", "float");
  b.forward("aten::linear", "[[4, 8, 16], [16, 16], []]", 10, 2);
  b.forward("aten::linear", "[[4, 8, 16], [100, 16], []]", 12, 3);
  b.backward("MmBackward0", 3,
             [&] { b.op("aten::mm", "[[32, 100], [100, 16]]", 20, StepBuilder::kAutograd); });
  b.backward("EmbeddingBackward0", 1, [&] {
    b.op("aten::embedding_dense_backward", "[[4, 8, 16], [4, 8]]", 5, StepBuilder::kAutograd);
  });
  b.gradient("[100, 16]");
  b.end_step();
  const Lifted l = lifted(trace);
  CHECK(l.workload.parameters() == 100 * 16 + 16 * 16);
  CHECK(l.workload.tied_embedding);
  CHECK(l.workload.layers[0].parameters() == 1600);
  REQUIRE(l.notes.size() >= 3);
  CHECK(l.notes[1] == "0.00160 M parameters are counted once: two layers share them");
  CHECK(l.notes[2] == "0.000256 M parameters have no gradient: they are not trained");
}

TEST_CASE("copies and collectives are no part of a layer") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.forward("aten::linear", "[[4, 8, 16], [64, 16], []]", 10, 1);
  b.launch(7, StepBuilder::kMain, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  b.wait(8);
  trace::GpuOp& copy = b.launch(9, StepBuilder::kMain, "Memcpy");
  copy.kind = trace::GpuKind::kCopy;
  copy.direction = trace::CopyDirection::kDeviceToHost;
  b.wait(8);
  b.end_step();
  trace.ranks[0].info.world_size = 4;
  const Lifted l = lifted(trace);
  CHECK(l.device.communication == Nanoseconds(7000));
  CHECK(l.device.copies == Nanoseconds(9000));
  CHECK(l.device.layers == Nanoseconds(10000));
  CHECK(l.world_size == 4u);
  REQUIRE_FALSE(l.plan);
  CHECK(
      to_string(l.plan.error()) ==
      "test: does not tell the plan it was recorded under: 1 collective of unknown kind; tensor, "
      "pipeline, context, expert and data parallelism, or ZeRO, in a recording that states groups "
      "and sizes of collectives");
  CHECK(l.notes.back() == "layers contain the work of the first rank, without communication");
}

TEST_CASE("work before the first recorded launch belongs to an earlier step") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.rank().kernel("from before", 0, 3, std::nullopt);
  b.op("aten::linear", "[[4, 8, 16], [64, 16], []]", 10);
  b.end_step();
  CHECK(lifted(trace).device.busy == Nanoseconds(10000));
}

TEST_CASE("without shapes a recording has times alone") {
  Trace trace;
  StepBuilder b(trace);
  b.begin_step();
  b.forward("aten::linear", "", 10, 1);
  b.forward("aten::linear", "", 12, 2);
  b.end_step();
  const Lifted l = lifted(trace);
  CHECK_FALSE(l.shapes);
  REQUIRE(l.workload.layers.size() == 2);
  CHECK(us(l.workload.layers[1].forward) == Approx(12));
  CHECK(l.workload.parameters() == 0);
  REQUIRE(l.workload.divided_by_tensor.size() == 1);
  CHECK(l.workload.divided_by_tensor[0].count == 1);
  const Status refused = needs_shapes("run.json", "tensor parallelism");
  CHECK(to_string(refused.error()) ==
        "run.json: has no operator shapes, which tensor parallelism needs; "
        "a recording with record_shapes=True, or the execution trace of the same run in addition");
}

TEST_CASE("recordings that cannot be lifted are errors with the reason") {
  Trace trace;
  StepBuilder b(trace);
  b.module("model", [] {});
  CHECK(
      to_string(lift(trace, {}).error()) ==
      "test: contains no work of operators; a recording with device activities, or with operators "
      "on host threads");
  trace.ranks[0].info.timed = false;
  CHECK(to_string(lift(trace, {}).error()) ==
        "test: has no times; a timed recording; an execution trace can be given in addition");
}

}  // namespace
}  // namespace rehearse::workload
