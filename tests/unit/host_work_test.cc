// Operators on host threads as work of cores.
#include "models/workload/host_work.h"

#include <catch2/catch.hpp>

#include "models/workload/lift.h"
#include "tests/support/trace_builder.h"

namespace rehearse::workload {
namespace {

using test::RankBuilder;
using trace::HostKind;
using trace::Trace;

/// Name and duration in µs of each device op.
std::vector<std::pair<std::string, double>> work_of(const Trace& trace) {
  std::vector<std::pair<std::string, double>> work;
  const std::optional<Trace> on_cores = with_host_work_on_cores(trace);
  if (!on_cores) return work;
  for (const trace::GpuOp& op : on_cores->ranks[0].gpu_ops)
    work.emplace_back(on_cores->names[op.name], op.duration.seconds().us());
  return work;
}

using Work = std::vector<std::pair<std::string, double>>;

TEST_CASE("an operator runs with all that it calls, and wrappers do not run") {
  Trace trace;
  RankBuilder b(trace);
  b.step(1, 0, 1000);
  b.host("enumerate(DataLoader)#next", 10, 90, HostKind::kAnnotation);
  b.host("aten::stack", 20, 70);
  b.host("aten::linear", 100, 100);
  b.host("aten::addmm", 110, 80);
  trace::HostOp& node = b.host("autograd::engine::evaluate_function: AddmmBackward0", 300, 200);
  node.sequence = 1;
  b.host("AddmmBackward0", 305, 190);
  b.host("aten::mm", 310, 60);
  b.host("aten::mm", 380, 100);
  b.host("my_ops::fused", 600, 50);
  b.host("my_ops::wrapper", 700, 50);
  b.host("aten::add", 705, 30);
  CHECK(work_of(trace) == Work{{"aten::linear", 100},
                               {"aten::mm", 60},
                               {"aten::mm", 100},
                               {"my_ops::fused", 50},
                               {"aten::add", 30}});
}

TEST_CASE("without operators innermost ranges of the passes run") {
  Trace trace;
  RankBuilder b(trace);
  b.host("load batch", 0, 50, HostKind::kAnnotation);
  b.host("forward", 50, 100, HostKind::kAnnotation);
  b.host("layer 0", 60, 30, HostKind::kAnnotation);
  b.host("layer 1", 100, 40, HostKind::kAnnotation);
  CHECK(work_of(trace) == Work{{"layer 0", 30}, {"layer 1", 40}});
}

TEST_CASE("a recording with a device, or with calls to one, keeps it") {
  Trace trace;
  RankBuilder b(trace);
  b.host("aten::linear", 100, 100);
  SECTION("kernels") { b.kernel("k", 110, 20, std::nullopt); }
  SECTION("launches alone") { b.call("cudaLaunchKernel", 110, 5, 1); }
  CHECK_FALSE(with_host_work_on_cores(trace));
}

/// Two tensor ranks on CPUs: 256 → 1024 → 256 divided, 100 µs per operator. Rank r comes `late`
/// later to the sum, which ends at 300 on both.
void add_rank(Trace& trace, double late) {
  RankBuilder b(trace);
  trace::Rank& rank = b.rank();
  rank.info.world_size = 2;
  const auto op = [&](const std::string& name, double at, double us, const std::string& shapes,
                      std::optional<std::uint32_t> sequence = {}) {
    std::string types = "[\"float\"";
    for (std::size_t i = shapes.find("], ["); i != std::string::npos;
         i = shapes.find("], [", i + 1))
      types += ", \"float\"";
    rank.inputs.push_back({trace.names.intern(shapes), trace.names.intern(types + "]")});
    trace::HostOp& row = b.host(name, at, us);
    row.inputs = trace::InputsId(rank.inputs.size() - 1);
    row.sequence = sequence;
  };
  const auto node = [&](double at, double us, std::uint32_t sequence) {
    trace::HostOp& row = b.host("AddmmBackward0", at, us);
    row.sequence = sequence;
    row.forward_thread = 1;
  };
  b.step(1, 0, 1000);
  op("aten::linear", 10 + late, 100, "[[8, 64, 256], [512, 256]]", 1);
  op("aten::linear", 120 + late, 100, "[[8, 64, 512], [256, 512]]", 2);
  rank.collectives.push_back({.kind = CollectiveKind::kAllReduce,
                              .bytes_in = 8 * 64 * 256 * 4,
                              .group_size = 2,
                              .ranks = trace.names.intern("[0, 1]")});
  b.host("mpi:all_reduce", 230 + late, 70 - late, HostKind::kAnnotation).collective =
      trace::CollectiveId(0);
  node(310, 220, 2);
  op("aten::mm", 315, 100, "[[512, 256], [256, 512]]");
  op("aten::mm", 420, 100, "[[256, 512], [512, 512]]");
  node(540, 110, 1);
  op("aten::mm", 545, 100, "[[512, 512], [512, 256]]");
}

TEST_CASE("tensor ranks of CPUs are joined to the whole model") {
  Trace trace;
  add_rank(trace, 0);
  add_rank(trace, 20);
  const Result<Lifted> lifted = lift(trace, {});
  REQUIRE(lifted);
  REQUIRE(lifted->plan);
  CHECK(lifted->plan->tensor == 2);
  CHECK(lifted->workload.parameters() == 2 * 256 * 1024);
  double us = 0, flops = 0;
  for (const Layer& layer : lifted->workload.layers)
    for (const auto* ops : {&layer.forward, &layer.backward})
      for (const Op& each : *ops) {
        us += each.measured->value.us();
        flops += flops_of(each).flop();
      }
  CHECK(us == Approx(500));  // waiting for the other rank is no work
  CHECK(flops == 5 * 2.0 * 512 * 256 * 1024);
}

}  // namespace
}  // namespace rehearse::workload
