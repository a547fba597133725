// A job recorded by Kineto and by the capture library is the same job.
#include <algorithm>
#include <array>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/workload/lift.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/lower.h"
#include "tests/support/data.h"
#include "tests/support/graph_text.h"
#include "tests/support/synthetic_job.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace trace;

Trace imported(const fs::path& path) {
  Result<Trace> trace = ingest::read_inputs(std::array{path}, {});
  INFO((trace ? "" : to_string(trace.error())));
  REQUIRE(trace);
  return std::move(*trace);
}

struct Both {
  Trace kineto;
  Trace capture;
};

Both both(const test::SyntheticJob& job) {
  const Trace made = test::make_job(job);
  const fs::path folder = test::scratch_folder() / "capture_kineto";
  fs::remove_all(folder);
  fs::create_directories(folder / "capture");
  std::ofstream(folder / "kineto.json") << test::as_kineto(made);
  std::ofstream(folder / "capture/host-10.cap", std::ios::binary) << test::as_capture(made);
  return {imported(folder / "kineto.json"), imported(folder / "capture")};
}

template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

/// Rows as texts, in no order. What one of the formats does not say (types) is left out.
std::vector<std::string> rows(const Trace& trace) {
  const Rank& rank = trace.ranks[0];
  std::vector<std::string> found;
  for (const HostOp& op : rank.host_ops)
    found.push_back(
        fmt::format("host {} {} {} {} {} {} {} {} {} {}", trace.names[op.name],
                    trace.names[rank.threads[op.thread.index()].process],
                    trace.names[rank.threads[op.thread.index()].thread], static_cast<int>(op.kind),
                    op.start.count(), op.duration.count(), shown(op.correlation),
                    shown(op.sequence) + " " + shown(op.forward_thread), shown(op.record_function),
                    op.inputs ? trace.names[rank.inputs[op.inputs->index()].shapes] : ""));
  for (const GpuOp& op : rank.gpu_ops) {
    const LaunchShape none{};
    const LaunchShape& shape =
        op.launch_shape ? rank.launch_shapes[op.launch_shape->index()] : none;
    found.push_back(fmt::format(
        "gpu {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", trace.names[op.name],
        static_cast<int>(op.kind), static_cast<int>(op.direction), static_cast<int>(op.host_memory),
        op.device, op.stream, op.start.count(), op.duration.count(), shown(op.correlation),
        shown(op.bytes), shape.grid[0], shape.block[0], shape.registers, shape.shared_bytes,
        op.collective ? static_cast<int>(rank.collectives[op.collective->index()].kind) : -1));
  }
  for (const Sync& sync : rank.syncs)
    found.push_back(fmt::format("sync {} {} {} {} {} {} {}", static_cast<int>(sync.kind),
                                sync.start.count(), sync.duration.count(), shown(sync.correlation),
                                shown(sync.stream), shown(sync.source_stream),
                                shown(sync.event_correlation)));
  std::sort(found.begin(), found.end());
  return found;
}

replay::ReplayGraph lowered(const Trace& trace) {
  const std::vector<replay::Recording> recordings = {replay::Recording(trace, 0)};
  Result<replay::ReplayGraph> graph = replay::to_graph(recordings);
  INFO((graph ? "" : to_string(graph.error())));
  REQUIRE(graph);
  return std::move(*graph);
}

/// Ops in their order and edges in none: two recordings may name the same causes in another order.
std::vector<std::string> lines_of(const graph::Graph& graph) {
  std::vector<std::string> lines;
  const std::string text = graph::to_text(graph);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void check_alike(const test::SyntheticJob& job) {
  INFO("seed " << job.seed);
  const Both read = both(job);
  REQUIRE(read.kineto.ranks.size() == 1);
  REQUIRE(read.capture.ranks.size() == 1);
  CHECK(read.capture.problems.worst() <= read.kineto.problems.worst());
  const std::vector<std::string> expected = rows(read.kineto), found = rows(read.capture);
  REQUIRE(expected.size() == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == expected[i]);

  const replay::ReplayGraph a = lowered(read.kineto), b = lowered(read.capture);
  CHECK(a.program.replays[0].step_source == b.program.replays[0].step_source);
  CHECK(a.program.replays[0].steps.size() == b.program.replays[0].steps.size());
  CHECK(a.program.replays[0].hand_offs == b.program.replays[0].hand_offs);
  CHECK(a.program.replays[0].backward_links == b.program.replays[0].backward_links);
  CHECK(a.program.replays[0].host_waits == b.program.replays[0].host_waits);
  for (int evidence = 0; evidence < 3; ++evidence)
    CHECK(a.program.replays[0].stream_waits[evidence] ==
          b.program.replays[0].stream_waits[evidence]);
  CHECK((lines_of(a.graph()) == lines_of(b.graph())));
  if (!job.operators || !job.step_marks) return;
  CHECK(a.program.replays[0].hand_offs == static_cast<std::size_t>(job.steps));
  CHECK(a.program.replays[0].backward_links > 0);
  CHECK(a.program.replays[0].stream_waits[0] >= static_cast<std::size_t>(job.steps * job.layers));
}

TEST_CASE("a job gives the same rows and the same step graph from Kineto and from a capture") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    check_alike({.seed = seed,
                 .steps = 2 + static_cast<int>(seed % 3),
                 .layers = 1 + 3 * static_cast<int>(seed)});
}

TEST_CASE("Kineto and a capture agree for jobs without steps, and with calls and devices alone") {
  check_alike({.seed = 11, .step_marks = false});
  check_alike({.seed = 12, .step_marks = false, .operators = false});
}

TEST_CASE("the layers of a job are the same, except for types that captures lack") {
  const Both read = both({.seed = 3, .steps = 3, .layers = 6});
  const auto a = workload::lift(read.kineto, {}), b = workload::lift(read.capture, {});
  REQUIRE(a);
  REQUIRE(b);
  // Each linear with what follows it; the recording's own modules, which are named by their paths.
  REQUIRE(b->workload.layers.size() == 6);
  REQUIRE(a->workload.layers.size() == b->workload.layers.size());
  for (std::size_t i = 0; i < 6; ++i) {
    const workload::Layer &x = a->workload.layers[i], &y = b->workload.layers[i];
    CHECK(x.name == y.name);
    CHECK(y.name == fmt::format("layers.{}", i));
    CHECK(x.forward.size() == y.forward.size());
    CHECK(x.backward.size() == y.backward.size());
  }
}

}  // namespace
}  // namespace rehearse
