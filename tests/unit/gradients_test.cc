// Gradients of a recording, and the collectives of one on another network.
#include "profiler/replay/gradients.h"

#include <catch2/catch.hpp>

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using test::RankBuilder;
using test::Replayed;
using trace::HostKind;
using trace::Trace;

void launch(RankBuilder& rank, double call, std::uint32_t correlation, double start,
            double duration) {
  rank.call("cudaLaunchKernel", call, 5, correlation);
  rank.kernel("k", start, duration, correlation);
}

void accumulate(RankBuilder& rank, Trace& trace, double start, const char* shapes,
                const char* types) {
  trace::HostOp& op = rank.host("torch::autograd::AccumulateGrad", start, 5);
  op.inputs = trace::InputsId(rank.rank().inputs.size());
  rank.rank().inputs.push_back({trace.names.intern(shapes), trace.names.intern(types)});
}

/// Two steps of 1 ms: a kernel, its gradient, another, its gradient, the optimizer's.
Trace two_steps(const char* types) {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 2; ++s) {
    const double t = 1000.0 * s;
    const auto c = static_cast<std::uint32_t>(10 * s);
    rank.step(s, t, 1000);
    launch(rank, t + 10, c + 1, t + 18, 100);
    accumulate(rank, trace, t + 20, "[[256, 1000]]", types);
    launch(rank, t + 30, c + 2, t + 119, 100);
    accumulate(rank, trace, t + 40, "[[1000]]", types);
    launch(rank, t + 60, c + 3, t + 220, 50);
    launch(rank, t + 70, c + 4, t + 271, 50);
  }
  return trace;
}

TEST_CASE("a gradient is ready with the last kernel launched before its operator ends") {
  const Replayed r(two_steps(R"(["float"])"));
  const RankReplay& rank = r.of_rank();
  const Result<Gradients> gradients = find_gradients(r.recordings[0], rank);
  REQUIRE(gradients);
  CHECK(gradients->overlapped);
  REQUIRE(gradients->steps.size() == 2);
  for (std::size_t s = 0; s < 2; ++s) {
    const program::GradientStep& step = gradients->steps[s];
    REQUIRE(step.gradients.size() == 2);
    CHECK(step.gradients[0].ready == rank.device_last[4 * s]);
    CHECK(step.gradients[0].size == Bytes::b(256 * 1000 * 4));
    CHECK(step.gradients[1].ready == rank.device_last[4 * s + 1]);
    CHECK(step.gradients[1].size == Bytes::b(4000));
    // The optimizer's first kernel: what the stream gets next.
    CHECK(step.users == std::vector<OpIndex>{rank.device_first[4 * s + 2]});
  }
}

TEST_CASE("gradients of half precision have two bytes per element") {
  const Replayed r(two_steps(R"(["c10::BFloat16"])"));
  const Result<Gradients> gradients = find_gradients(r.recordings[0], r.of_rank());
  REQUIRE(gradients);
  CHECK(gradients->steps[0].gradients[1].size == Bytes::b(2000));
}

TEST_CASE("gradients of unknown size are refused, not left out") {
  const Replayed r(two_steps(R"(["mystery"])"));
  const Result<Gradients> gradients = find_gradients(r.recordings[0], r.of_rank());
  REQUIRE_FALSE(gradients);
  CHECK(to_string(gradients.error()).find("record_shapes") != std::string::npos);
}

TEST_CASE(
    "without a device a gradient is ready with its operator, and the optimizer waits for all") {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 2; ++s) {
    const double t = 1000.0 * s;
    rank.step(s, t, 1000);
    rank.host("aten::mm", t + 10, 300);
    accumulate(rank, trace, t + 320, "[[256, 1000]]", R"(["float"])");
    accumulate(rank, trace, t + 400, "[[1000]]", R"(["float"])");
    rank.host("Optimizer.step#SGD.step", t + 500, 200, HostKind::kAnnotation);
    rank.host("aten::add_", t + 510, 100);
  }
  const Replayed r(std::move(trace));
  const Result<Gradients> gradients = find_gradients(r.recordings[0], r.of_rank());
  REQUIRE(gradients);
  CHECK(gradients->overlapped);
  REQUIRE(gradients->steps.size() == 2);
  const auto end_us = [&](OpIndex op) {
    return r.timeline[r.graph.lowered.op(0, op)].end.seconds().us();
  };
  REQUIRE(gradients->steps[1].gradients.size() == 2);
  CHECK(end_us(gradients->steps[1].gradients[0].ready) == Approx(1325));
  CHECK(end_us(gradients->steps[1].gradients[1].ready) == Approx(1405));
  REQUIRE(gradients->steps[1].users.size() == 1);
  CHECK(end_us(gradients->steps[1].users[0]) == Approx(1610));  // the end of aten::add_
}

TEST_CASE("a range with a payload is a gradient that its own thread sums") {
  Trace trace;
  RankBuilder rank(trace);
  for (int s = 0; s < 2; ++s) {
    rank.step(s, 1000.0 * s, 1000);
    rank.host("backward", 1000.0 * s + 100, 500, HostKind::kAnnotation);
    rank.host("gradient", 1000.0 * s + 610, 1, HostKind::kAnnotation).payload = 4096;
    rank.host("optimizer", 1000.0 * s + 700, 200, HostKind::kAnnotation);
  }
  const Replayed r(std::move(trace));
  const Result<Gradients> gradients = find_gradients(r.recordings[0], r.of_rank());
  REQUIRE(gradients);
  CHECK_FALSE(gradients->overlapped);
  REQUIRE(gradients->steps.size() == 2);
  const program::Gradient& first = gradients->steps[0].gradients.at(0);
  CHECK(first.size == Bytes::b(4096));
  CHECK(r.timeline[r.graph.lowered.op(0, first.ready)].end.seconds().us() == Approx(611));
  CHECK(gradients->steps[0].users.empty());
}

TEST_CASE("the error of a recording without gradients names the requirement") {
  Trace trace;
  RankBuilder(trace).host("forward", 0, 100);
  const Replayed r(std::move(trace));
  const Result<Gradients> gradients = find_gradients(r.recordings[0], r.of_rank());
  REQUIRE_FALSE(gradients);
  CHECK(to_string(gradients.error()).find("contains no gradients") != std::string::npos);
}

TEST_CASE("the size of a collective is that of its whole buffer") {
  Trace trace;
  RankBuilder rank(trace);
  rank.rank().info.world_size = 4;
  const auto add = [&](const char* name, CollectiveKind kind, std::uint32_t c,
                       std::optional<std::uint64_t> in, std::optional<std::uint64_t> out) {
    rank.call("cudaLaunchKernel", 100.0 * c, 5, c);
    rank.kernel(name, 100.0 * c + 8, 50, c).collective =
        trace::CollectiveId(rank.rank().collectives.size());
    rank.rank().collectives.push_back({.kind = kind, .bytes_in = in, .bytes_out = out});
  };
  add("ncclKernel_AllReduce", CollectiveKind::kAllReduce, 1, 100, 100);
  add("ncclKernel_AllGather", CollectiveKind::kAllGather, 2, 25, std::nullopt);
  add("ncclKernel_ReduceScatter", CollectiveKind::kReduceScatter, 3, std::nullopt, 25);
  add("ncclKernel_AllReduce", CollectiveKind::kAllReduce, 4, std::nullopt, std::nullopt);
  const Replayed r(std::move(trace));
  std::size_t known = 0, unknown = 0;
  for (const program::ProgramOp& op : r.program.programs[0].ops) {
    if (op.task != program::Task::kCollective) continue;
    ++(op.sized ? known : unknown);
    if (!op.sized) continue;
    CHECK(op.bytes == Bytes::b(100));
    const auto& group = r.program.groups[r.program.groups_of[0][op.group]];
    CHECK(group.ranks() == 4);
    CHECK(group.members == std::vector<RankId>{RankId(0)});
  }
  CHECK(known == 3);
  CHECK(unknown == 1);
}

}  // namespace
}  // namespace rehearse::replay
