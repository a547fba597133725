// Traces of JAX's profiler: lines of the host and of GPUs, and where steps come from.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "tests/support/data.h"
#include "tests/support/replayed.h"

namespace rehearse {
namespace jax_test {

using test::Replayed;

std::filesystem::path written(const std::string& events) {
  std::filesystem::path file = test::scratch_folder() / "host.trace.json";
  std::ofstream(file) << R"({"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [)" << events
                      << "{}]}";
  return file;
}

Result<trace::Trace> read(const std::filesystem::path& file) {
  return ingest::read_inputs(std::span(&file, 1), {});
}

trace::Trace sound(const std::filesystem::path& file) {
  Result<trace::Trace> trace = read(file);
  INFO((trace ? "" : to_string(trace.error())));
  REQUIRE(trace);
  return *std::move(trace);
}

std::string named(const char* what, int process, int thread, const std::string& name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}},)", what,
                     process, thread, name);
}
std::string event(const std::string& name, int process, int thread, double ts, double dur,
                  const std::string& args = "") {
  return fmt::format(
      R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)", name,
      process, thread, ts, dur, args);
}
std::string gpu_lines() {
  return named("process_name", 1, 0, "/device:GPU:0") +
         named("thread_name", 1, 14, "Stream #14(Compute,Memset)") +
         named("thread_name", 1, 50, "XLA Ops") + named("thread_name", 1, 51, "XLA Modules") +
         named("thread_name", 1, 52, "Steps") + named("process_name", 701, 0, "/host:CPU") +
         named("thread_name", 701, 9, "python");
}

TEST_CASE("events on streams of a GPU are its ops, and those of derived lines are not") {
  const trace::Trace trace = sound(test::source_file("tests/fuzz/corpus/jax/gpu.json"));
  const trace::Rank& rank = trace.ranks.at(0);
  CHECK(rank.info.format == "jax");
  REQUIRE(rank.gpu_ops.size() == 2);
  const trace::GpuOp &copy = rank.gpu_ops[0], &kernel = rank.gpu_ops[1];
  CHECK(copy.stream == 15);
  CHECK(copy.direction == trace::CopyDirection::kHostToDevice);
  CHECK(copy.host_memory == trace::HostMemory::kPinned);
  CHECK(copy.bytes == 4096U);
  CHECK(kernel.stream == 14);
  CHECK(kernel.duration == Nanoseconds(40'500));
  const trace::LaunchShape& shape = rank.launch_shapes[kernel.launch_shape->index()];
  CHECK(shape.grid[1] == 2);
  CHECK(shape.block[0] == 128);
  CHECK(shape.registers == 32);
  REQUIRE(rank.host_ops.size() == 3);
  CHECK(trace.names[rank.host_ops[0].name] == "step 5");
  CHECK(rank.host_ops[2].kind == trace::HostKind::kDriver);
  CHECK(rank.host_ops[2].correlation == kernel.correlation);
}

TEST_CASE("steps are numbered ranges of the host, without a host XLA's steps or a module's runs") {
  const auto steps_of = [](const std::string& marks, bool host) {
    std::string text = gpu_lines() + marks;
    for (int s = 0; s < 3; ++s)
      text += (host ? event("cuLaunchKernel", 701, 9, 100 * s + 5, 4,
                            fmt::format("\"correlation_id\":\"{}\"", s + 1))
                    : std::string()) +
              event("fusion", 1, 14, 100 * s + 15, 70,
                    fmt::format("\"correlation_id\":\"{}\"", s + 1)) +
              event("fusion.1", 1, 50, 100 * s + 15, 70);
    Replayed r(sound(written(text)));
    CHECK(r.program.replays[0].step_source == replay::StepSource::kMarks);
    std::vector<std::string> names;
    for (const replay::StepOps& step : r.program.replays[0].steps) names.push_back(step.step.name);
    return names;
  };
  std::string ranges, steps, modules;
  for (int s = 0; s < 3; ++s) {
    const std::string number = fmt::format("\"step_num\":{}", s + 7);
    // A range within a step repeats its number.
    ranges += event("train", 701, 9, 100 * s, 100, number) +
              event("next batch", 701, 9, 100 * s + 1, 3, number);
    steps += event(fmt::format("{}", s), 1, 52, 100 * s + 15, 70);
    modules +=
        event("jit_train_step", 1, 51, 100 * s + 15, 70) + event("jit_log", 1, 51, 100 * s + 90, 1);
  }
  CHECK(steps_of(ranges + steps, true) == std::vector<std::string>{"step 7", "step 8", "step 9"});
  CHECK(steps_of(steps + modules, false) == std::vector<std::string>{"step 0", "step 1", "step 2"});
  CHECK(steps_of(modules, false) == std::vector<std::string>{"step 0", "step 1", "step 2"});
}

TEST_CASE("a profile of a TPU or of the host alone is refused") {
  for (const char* process : {"/device:TPU:0", "/host:CPU"}) {
    const auto trace =
        read(written(named("process_name", 1, 0, process) + named("thread_name", 1, 2, "XLA Ops") +
                     event("fusion", 1, 2, 0, 10)));
    REQUIRE_FALSE(trace);
    CHECK(to_string(trace.error())
              .find("has no events on streams of a GPU; a profile with a process /device:GPU:0 and "
                    "threads 'Stream #…'") != std::string::npos);
  }
}

TEST_CASE("lines without a name are streams if their events have the details of device work") {
  const trace::Trace trace =
      sound(written(named("process_name", 2, 0, "/device:GPU:0") +
                    event("fusion", 2, 7, 5, 10, R"("kernel_details":"regs:16 grid:1,1,1")") +
                    event("jit_step", 2, 8, 5, 10)));
  REQUIRE(trace.ranks.at(0).gpu_ops.size() == 1);
  CHECK(trace.ranks[0].gpu_ops[0].stream == 7);
}

TEST_CASE("every GPU of a process keeps its streams") {
  const trace::Trace trace =
      sound(written(gpu_lines() + named("process_name", 2, 0, "/device:GPU:1 (NVIDIA H100)") +
                    named("thread_name", 2, 14, "Stream #14(MemcpyP2P,Compute)") +
                    event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 14, 5, 10) +
                    event("MemcpyP2P", 2, 14, 20, 10) + event("fusion", 1, 14, 5, 10)));
  const trace::Rank& rank = trace.ranks.at(0);
  REQUIRE(rank.gpu_ops.size() == 3);
  CHECK(rank.gpu_ops[0].device == 1);
  REQUIRE(rank.gpu_ops[0].collective);
  CHECK(rank.collectives[0].kind == CollectiveKind::kAllReduce);
  CHECK(rank.gpu_ops[1].direction == trace::CopyDirection::kPeer);
  CHECK(rank.gpu_ops[2].device == 0);
  CHECK(rank.devices.size() == 2);
}

}  // namespace jax_test
}  // namespace rehearse
