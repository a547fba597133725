// A recording laid out: its times are kept where its extents are, follow them where they change,
// and its optimizer and checkpoints are never there twice.
#include <catch2/catch.hpp>

#include "cli/config/recorded_workload.h"
#include "models/compute/op_cost.h"
#include "models/workload/lift.h"
#include "profiler/ingest/input.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"
#include "tests/support/data.h"
#include "tests/support/laid_out.h"

namespace rehearse {
namespace {

using test::laid_out;
using workload::Layer;
using workload::Layout;
using workload::Op;

/// For one sample; recorded with 8.
workload::Workload two_linears() {
  const std::vector<std::filesystem::path> paths = {
      test::source_file("examples/recordings/two_linears.json")};
  const Result<trace::Trace> trace = ingest::read_inputs(paths, {});
  REQUIRE(trace);
  Result<workload::Lifted> lifted = workload::lift(*trace, {});
  REQUIRE(lifted);
  return workload::with_samples(std::move(lifted->workload), 1);
}

template <class Visit>
void each_op(const Layout& layout, Visit visit) {
  for (const workload::Stage& stage : layout.stages)
    for (const workload::Chunk& chunk : stage.chunks)
      for (const Layer& layer : chunk.layers)
        for (const auto* ops : {&layer.forward, &layer.backward, &layer.recompute, &layer.step})
          for (const Op& op : *ops)
            if (!op.communicates()) visit(op);
}

double busy_us(const Layout& layout, const compute::OpCost& cost) {
  double sum = 0;
  each_op(layout, [&](const Op& op) { sum += cost.time(op).value.us(); });
  return sum;
}

compute::OpCost v100() {
  Result<compute::OpCost> cost = compute::OpCost::on("v100_sxm2_16", {});
  REQUIRE(cost);
  return *cost;
}

const strategies::Training kRecorded = {
    .global_batch = 8, .microbatch = 8, .dtype = workload::Dtype::kFp32};

TEST_CASE("a recording on one rank, and under data parallelism, takes the recorded time") {
  const workload::Workload workload = two_linears();
  const Layout one = laid_out(workload, kRecorded, {});
  CHECK(busy_us(one, v100()) == Approx(700).epsilon(1e-12));
  each_op(one, [](const Op& op) {
    REQUIRE(op.measured);
    CHECK_FALSE(workload::differs_from_measured(op));
  });
  strategies::Training twice = kRecorded;
  twice.global_batch = 16;
  CHECK(busy_us(laid_out(workload, twice, {.data = 2}), v100()) == Approx(700).epsilon(1e-12));
}

TEST_CASE("another batch takes the recorded time times the ratio of the cost model") {
  const workload::Workload workload = two_linears();
  strategies::Training more = kRecorded;
  more.global_batch = more.microbatch = 24;  // through one sample, which is no exact binary number
  const compute::OpCost cost = v100();
  std::size_t changed = 0;
  each_op(laid_out(workload, more, {}), [&](const Op& op) {
    const Op before = workload::as_measured(op);
    const double ratio = cost.predicted(op).value / cost.predicted(before).value;
    CHECK(cost.time(op).value.s() == Approx(op.measured->value.s() * ratio));
    if (!workload::differs_from_measured(op)) return;
    ++changed;
    CHECK(ratio > 1);
    CHECK(ratio < 3.0001);
    CHECK(cost.time(op).provenance == Provenance::kInterpolated);
    if (op.samples == workload::Extent::kM) CHECK(op.m == before.m * 3);
  });
  CHECK(changed >= 7);  // all but the optimizer
}

TEST_CASE("a recorded optimizer stays, once, for the parameters that a rank updates") {
  const workload::Workload workload = two_linears();
  strategies::Training twice = kRecorded;
  twice.global_batch = 16;
  const auto updates = [](const Layout& layout) {
    std::vector<Op> found;
    for (const Layer& layer : layout.stages[0].chunks[0].layers)
      for (const Op& op : layer.step)
        if (!op.communicates()) found.push_back(op);
    return found;
  };
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    INFO("zero " << zero);
    const std::vector<Op> found = updates(laid_out(workload, twice, {.data = 2, .zero = zero}));
    REQUIRE(found.size() == workload.layers.size());
    for (const Op& op : found) {
      REQUIRE(op.measured);
      CHECK(op.bytes.b() == Approx(workload::as_measured(op).bytes.b() / (zero == 0 ? 1 : 2)));
    }
  }
  // Half of the matrices, but all of the second bias, are on a tensor rank.
  const std::vector<Op> shares = updates(laid_out(workload, kRecorded, {.tensor = 2}));
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].bytes.b() == Approx(workload::as_measured(shares[0]).bytes.b() / 2));
  // Servers update instead of workers.
  strategies::Plan servers{.data = 2,
                           .synchronization = strategies::Synchronization::kParameterServer};
  const Layout served = laid_out(workload, twice, servers);
  CHECK(updates(served).empty());
  // In the recorded time per byte: the recorded bytes, and for each of two pushes what it is read and
  // added to, 4 + 8 bytes a parameter.
  REQUIRE(served.servers);
  const Op& update = served.servers->update;
  REQUIRE(update.measured);
  Seconds time = Seconds::s(0);
  Bytes bytes = Bytes::b(0);
  for (const Op& op : updates(laid_out(workload, kRecorded, {}))) {
    time += op.measured->value;
    bytes += op.bytes;
  }
  CHECK(update.measured->value.s() == Approx(time.s()));
  CHECK(workload::as_measured(update).bytes.b() == Approx(bytes.b()));
  CHECK(update.bytes.b() == Approx(bytes.b() + served.servers->parameters * 2 * 12));
}

TEST_CASE("recorded checkpoints are kept under any requested recomputation") {
  workload::Workload workload = two_linears();
  workload.layers[0].recompute = workload.layers[0].forward;
  const std::size_t recorded = workload.layers[0].recompute.size();
  for (const auto recompute : {strategies::Recompute::kNone, strategies::Recompute::kSelective,
                               strategies::Recompute::kFull}) {
    strategies::Training training = kRecorded;
    training.recompute = recompute;
    const Layout layout = laid_out(workload, training, {});
    CHECK(layout.stages[0].chunks[0].layers[0].recompute.size() == recorded);
  }
}

TEST_CASE("dividing and multiplying by the same number keeps whole extents") {
  Op op{.name = "product", .kind = workload::OpKind::kGemm, .batch = 1, .m = 448, .n = 7, .k = 9};
  op.measured = {Seconds::us(3), Seconds::us(3), Seconds::us(3), Provenance::kRecorded};
  for (const double by : {3.0, 7.0, 49.0, 1.1}) {
    workload::divide(op, workload::Extent::kM, by);
    CHECK(workload::differs_from_measured(op));
    workload::divide(op, workload::Extent::kM, 1 / by);
    CHECK(op.m == 448);
    CHECK_FALSE(workload::differs_from_measured(op));
  }
}

TEST_CASE("ResNet-50, recorded on a V100: one rank at the recorded batch takes the recorded time") {
  const auto path = test::shared_data(
      "kineto-resnet50-v100/resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz");
  SKIP_WITHOUT_DATA(path);
  const std::vector<std::filesystem::path> paths = {*path};
  const Result<trace::Trace> trace = ingest::read_inputs(paths, {});
  REQUIRE(trace);
  Result<workload::Lifted> lifted = workload::lift(*trace, {});
  REQUIRE(lifted);
  const double recorded = lifted->device.layers.seconds().us();
  const workload::Workload sample = workload::with_samples(std::move(lifted->workload), 1);
  strategies::Training training = {
      .global_batch = 32, .microbatch = 32, .dtype = workload::Dtype::kFp32};
  CHECK(busy_us(laid_out(sample, training, {}), v100()) == Approx(recorded).epsilon(1e-9));
  // Twice the batch: convolutions and memory grow in proportion, launches do not.
  training.global_batch = training.microbatch = 64;
  const double twice = busy_us(laid_out(sample, training, {}), v100());
  CHECK(twice > 1.7 * recorded);
  CHECK(twice < 2.02 * recorded);
}

// Rank 0 of examples/ranks waits for rank 1 in its all-reduce, which then takes 15 us.
TEST_CASE(
    "recorded collectives scale links by their time without waiting, if all ranks are given") {
  const std::vector<std::filesystem::path> paths = {test::source_file("examples/ranks")};
  Result<trace::Trace> trace = ingest::read_inputs(paths, {});
  REQUIRE(trace);
  const std::vector<cli::RecordedCollective> recorded = cli::recorded_collectives(*trace);
  REQUIRE(recorded.size() == 1);
  CHECK(recorded.front().kind == CollectiveKind::kAllReduce);
  CHECK(recorded.front().bytes == Bytes::kib(768));
  CHECK(recorded.front().time.us() == Approx(15));
  CHECK(recorded.front().one_host);
  const Result<cluster::Cluster> cluster = cluster::parse_cluster(
      "cluster: {device: v100_sxm2_32, devices_per_node: 2, nodes: 1, intra_node: nvlink}\n", "c");
  REQUIRE(cluster);
  std::vector<std::string> notes;
  const auto scales_on = [&](const cluster::Cluster& on, const std::string& device) {
    return cli::scales_of(recorded, device, on, notes);
  };
  const comm::LinkScales scales = scales_on(*cluster, "v100_sxm2_32");
  CHECK(scales.within != 1);
  CHECK(scales.between == 1);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().starts_with("1 recorded collective within a node: 15.0 us without waiting"));
  // On links that are scaled by it, collectives take as long as recorded.
  CHECK(scales_on(comm::with_slower_links(*cluster, scales), "v100_sxm2_32").within == Approx(1));
  notes.clear();
  CHECK(scales_on(*cluster, "h100_sxm5_80") == comm::LinkScales{});
  trace->ranks.pop_back();
  CHECK(cli::recorded_collectives(*trace).empty());
  CHECK(notes.empty());
}

}  // namespace
}  // namespace rehearse
