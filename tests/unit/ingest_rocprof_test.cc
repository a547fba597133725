// rocprofv3: the rows of its JSON and of its CSV files, in the layouts of ROCm 6.2 to 7.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "tests/support/data.h"
#include "tests/support/replayed.h"

namespace rehearse {
namespace rocprof_test {

namespace fs = std::filesystem;
using test::Replayed;

Result<trace::Trace> read(const fs::path& path) {
  return ingest::read_inputs(std::span(&path, 1), {});
}

trace::Trace sound(const fs::path& path) {
  Result<trace::Trace> trace = read(path);
  INFO((trace ? "" : to_string(trace.error())));
  REQUIRE(trace);
  return *std::move(trace);
}

std::string error_of(const fs::path& path) {
  const auto trace = read(path);
  REQUIRE_FALSE(trace);
  return to_string(trace.error());
}

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

constexpr std::string_view kApi =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\","
    "\"End_Timestamp\"\n";

/// Three steps of 100 us with a copy of 10 us and a kernel of 50 us, of one process.
fs::path folder_of_tables() {
  fs::path folder = test::scratch_folder() / "host";
  std::string kernels =
      "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_"
      "Id\","
      "\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Workgroup_Size_"
      "X\","
      "\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n";
  std::string copies =
      "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\","
      "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
  std::string calls(kApi), markers(kApi);
  constexpr std::int64_t kStart = 9'100'000'000'000'001;  // beyond the whole numbers of a double
  for (int s = 0; s < 3; ++s) {
    const std::int64_t t = kStart + s * 100'000;
    const int id = 10 * s + 1;
    markers += fmt::format("\"MARKER_CORE_RANGE_API\",\"step {}\",70,70,{},{},{}\n", s, id, t,
                           t + 100'000);
    markers += fmt::format("\"MARKER_CORE_API\",\"an instant\",70,70,{},{},{}\n", id + 4, t, t);
    calls += fmt::format("\"HIP_RUNTIME_API\",\"hipMemcpyAsync\",70,70,{},{},{}\n", id + 1,
                         t + 1'000, t + 3'000);
    calls += fmt::format("\"HIP_RUNTIME_API_EXT\",\"hipLaunchKernel\",70,70,{},{},{}\n", id + 2,
                         t + 5'000, t + 8'000);
    calls += fmt::format("\"HIP_RUNTIME_API\",\"hipDeviceSynchronize\",70,70,{},{},{}\n", id + 3,
                         t + 10'000, t + 90'000);
    copies += fmt::format(
        "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",1,\"Agent 0\",\"Agent 1\",{},{},{}\n",
        id + 1, t + 11'000, t + 21'000);
    kernels += fmt::format(
        "\"KERNEL_DISPATCH\",\"Agent 1\",7,1,70,1,3,\"k(float*, int)\",{},{},{},64,1,1,6401,1,1\n",
        id + 2, t + 22'000, t + 72'000);
  }
  write(folder / "70_kernel_trace.csv", kernels);
  write(folder / "70_memory_copy_trace.csv", copies);
  write(folder / "70_hip_api_trace.csv", calls);
  write(folder / "70_marker_api_trace.csv", markers);
  write(folder / "70_agent_info.csv",
        "\"Logical_Node_Id\",\"Agent_Type\",\"Cu_Count\",\"Name\",\"Product_Name\"\n"
        "0,\"CPU\",0,\"cpu\",\"\"\n1,\"GPU\",304,\"gfx942\",\"AMD Instinct MI300X\"\n");
  return folder;
}

TEST_CASE("rocprofv3's CSV files of a process are one rank, with steps, launches and waits") {
  const fs::path folder = folder_of_tables();
  for (const fs::path& path : {folder, folder / "70_kernel_trace.csv"}) {
    Replayed r(sound(path));
    REQUIRE(r.trace->ranks.size() == 1);
    const trace::Rank& rank = r.trace->ranks[0];
    CHECK(rank.info.format == "rocprofv3");
    REQUIRE(rank.devices.size() == 1);
    CHECK(rank.devices[0].name == "AMD Instinct MI300X");
    REQUIRE(rank.gpu_ops.size() == 6);
    const trace::GpuOp &kernel = rank.gpu_ops[0], &copy = rank.gpu_ops[3];
    CHECK(r.trace->names[kernel.name] == "k(float*, int)");
    CHECK(kernel.duration == Nanoseconds(50'000));
    CHECK(kernel.start - copy.start == Nanoseconds(11'000));
    CHECK(kernel.device == 1);
    CHECK(kernel.stream == copy.stream);
    REQUIRE(kernel.launch_shape);
    CHECK(rank.launch_shapes[kernel.launch_shape->index()].grid[0] == 101);  // 6401 threads of 64
    CHECK(copy.direction == trace::CopyDirection::kHostToDevice);
    CHECK(rank.host_ops.size() == 3 + 9);  // without instants
    CHECK(r.recordings[0].launcher(0).has_value());
    CHECK(r.trace->problems.worst() == trace::Severity::kInfo);
    REQUIRE(r.program.replays[0].steps.size() == 3);
    CHECK(r.program.replays[0].step_source == replay::StepSource::kMarks);
    CHECK(r.host_us(0) == Approx(100).epsilon(0.02));
  }
}

TEST_CASE("a table of kernels suffices, in the layouts of ROCm 6.2 and 7") {
  const trace::Trace old = sound(test::source_file("tests/fuzz/corpus/rocprof_csv/rocm_6_2.csv"));
  REQUIRE(old.ranks[0].gpu_ops.size() == 1);
  CHECK(old.ranks[0].gpu_ops[0].duration == Nanoseconds(4'000));
  CHECK(old.ranks[0].gpu_ops[0].stream == 0);  // a handle in the file
  const trace::Trace now = sound(test::source_file("tests/fuzz/corpus/rocprof_csv/rocm_7.csv"));
  CHECK(now.names[now.ranks[0].gpu_ops[0].name] == "Cijk_Ailk \"x\"");
  CHECK(now.ranks[0].gpu_ops[0].device == 4);
}

TEST_CASE("rocprofv3's JSON has the same rows") {
  const trace::Trace trace = sound(test::source_file("tests/fuzz/corpus/rocprof_json/rocm_7.json"));
  const trace::Rank& rank = trace.ranks.at(0);
  REQUIRE(rank.gpu_ops.size() == 2);
  const trace::GpuOp &kernel = rank.gpu_ops[0], &copy = rank.gpu_ops[1];
  CHECK(trace.names[kernel.name] == "k(float*)");
  CHECK(kernel.duration == Nanoseconds(10'000));
  CHECK(rank.launch_shapes[kernel.launch_shape->index()].grid[0] == 100);
  CHECK(kernel.device == 1);
  CHECK(copy.kind == trace::GpuKind::kCopy);
  CHECK(copy.direction == trace::CopyDirection::kHostToDevice);
  CHECK(copy.bytes == 4096U);
  REQUIRE(rank.host_ops.size() == 3);
  CHECK(trace.names[rank.host_ops[0].name] == "step 1");
  CHECK(rank.host_ops[0].kind == trace::HostKind::kAnnotation);
  CHECK(trace.names[rank.host_ops[1].name] == "hipLaunchKernel");
  CHECK(rank.host_ops[1].correlation == kernel.correlation);
  CHECK(rank.devices.at(0).multiprocessors == 304U);
  CHECK(trace.problems.worst() == trace::Severity::kInfo);
  // One process without a list around it, and the earlier name of the table.
  const trace::Trace one =
      sound(test::source_file("tests/fuzz/corpus/rocprof_json/one_process.json"));
  CHECK(one.names[one.ranks.at(0).gpu_ops.at(0).name] == "kernel 3");
}

TEST_CASE("what rocprofv3's files lack or have wrong is said with its place") {
  const fs::path folder = test::scratch_folder();
  const auto table = [&](std::string_view text) {
    write(folder / "1_kernel_trace.csv", text);
    return error_of(folder / "1_kernel_trace.csv");
  };
  CHECK(table("Kernel_Name,Start_Timestamp,End_Timestamp\nk,1,x\n")
            .find("1_kernel_trace.csv:2: End_Timestamp: 'x' is no time; nanoseconds") !=
        std::string::npos);
  CHECK(table("Kernel_Name,Start_Timestamp,End_Timestamp,Agent_Id\nk,1,2,GPU x\n")
            .find("'GPU x' is no agent; Agent 5") != std::string::npos);
  CHECK(table("Kernel_Name,Start_Timestamp,End_Timestamp\n").find("has no kernels") !=
        std::string::npos);
  CHECK(table("Kind,Kernel_Name,Start_Timestamp,End_Timestamp\nMEMORY_COPY,k,1,2\n")
            .find("has no kernel that can be read") != std::string::npos);
  write(folder / "none.json", R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]})");
  CHECK(error_of(folder / "none.json").find("contains no kernel and no copy") != std::string::npos);
  write(folder / "cut.json", R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 1)");
  CHECK(error_of(folder / "cut.json").find("is damaged before its first kernel") !=
        std::string::npos);
}

}  // namespace rocprof_test
}  // namespace rehearse
