// Kernels, copies, calls and waits, recorded from a mock driver and a mock CUPTI of every version,
// and everything that can be wrong with them: the program runs as it would without us.
#include <algorithm>
#include <csignal>
#include <set>

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "profiler/capture/options.h"
#include "sim/base/file.h"
#include "tests/support/capture_run.h"
#include "tests/support/captured_tables.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace capture;
using Variables = std::map<std::string, std::string>;

struct GpuRun {
  int status;  ///< as waitpid gives it
  std::string errors;
  std::vector<test::CapturedTables> files;

  const test::CapturedTables& only() const {
    REQUIRE(files.size() == 1);
    return files[0];
  }
};

fs::path mock(const std::string& name) { return test::capture_program("mocks") / name; }

std::unique_ptr<test::Running> start_gpu(std::vector<std::string> words, const fs::path& folder,
                                         Variables variables = {}) {
  words.insert(words.begin(), test::capture_program("gpu_target"));
  variables.merge(test::recording_to(folder));
  variables.merge(Variables{{"CUDA_INJECTION64_PATH", test::capture_library()},
                            {"REHEARSE_CUPTI", mock("libcupti.so.13")}});
  return std::make_unique<test::Running>(std::move(words), std::move(variables), folder);
}

GpuRun run_gpu(std::vector<std::string> words, Variables variables = {}) {
  const fs::path folder = test::scratch_folder();
  const auto running = start_gpu(std::move(words), folder, std::move(variables));
  const int status = running->wait();
  return {status, running->errors(), test::captured_tables(folder)};
}

template <class Record>
std::size_t count(const test::CapturedTables& tables) {
  return tables.all<Record>().size();
}

std::size_t ranges(const test::CapturedTables& tables) {
  return static_cast<std::size_t>(
      std::count_if(tables.rows.begin(), tables.rows.end(),
                    [](const Row& row) { return row.kind == RowKind::kRange; }));
}

TEST_CASE("a step on a GPU is recorded as it was") {
  const GpuRun run = run_gpu({"init", "steps", "3"});
  CHECK(run.status == 0);
  CHECK(run.errors.empty());
  const test::CapturedTables& file = run.only();
  CHECK(file.ended);
  CHECK(file.lost == 0);
  CHECK(ranges(file) == 3 * 4);

  const auto kernels = file.all<KernelRecord>();
  REQUIRE(kernels.size() == 3 * 5);
  std::multiset<std::pair<std::string, std::uint64_t>> durations;
  for (const KernelRecord& kernel : kernels)
    durations.insert({file.text(kernel.name), kernel.end - kernel.start});
  CHECK(durations.count({"_Z4gemmPfS_S_i", 20000}) == 3);
  CHECK(durations.count({"_Z4gemmPfS_S_i", 40000}) == 3);
  CHECK(durations.count({"relu_kernel", 5000}) == 3);
  CHECK(durations.count({"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 15000}) == 3);
  CHECK(durations.count({"triton_adam", 8000}) == 3);
  const auto gemm = std::find_if(kernels.begin(), kernels.end(), [&](const KernelRecord& kernel) {
    return file.text(kernel.name) == "_Z4gemmPfS_S_i";
  });
  CHECK(gemm->grid_x == 64);
  CHECK(gemm->grid_y == 2);
  CHECK(gemm->block_x == 256);
  CHECK(gemm->registers == 32);
  CHECK(gemm->static_shared == 1024);
  CHECK(gemm->dynamic_shared == 2048);
  CHECK(gemm->cluster_x == 2);
  CHECK(gemm->stream == 7);
  CHECK(gemm->graph == 0);

  // Each has the call that started it, made before it on the program's thread.
  const auto calls = file.all<CallRecord>();
  for (const KernelRecord& kernel : kernels) {
    const bool of_runtime = file.text(kernel.name) != "triton_adam";
    std::size_t runtime = 0, driver = 0;
    for (const CallRecord& call : calls) {
      if (call.correlation != kernel.correlation) continue;
      CHECK(call.thread == file.process.process);  // it has one thread
      CHECK(call.start <= kernel.start);
      CHECK(call.result == 0);
      (call.driver != 0 ? driver : runtime) += 1;
      CHECK(file.text(call.name) == (call.driver != 0 ? "cuLaunchKernel" : "cudaLaunchKernel"));
    }
    CHECK(runtime == (of_runtime ? 1 : 0));
    CHECK(driver == 1);
  }
  // Names are those of the documentation, and the call that is not worth it is not there.
  std::set<std::string> names;
  for (const CallRecord& call : calls) names.insert(file.text(call.name));
  CHECK(names == std::set<std::string>{
                     "cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cuMemcpyHtoDAsync",
                     "cudaMemsetAsync", "cuMemsetD8Async", "cudaEventRecord", "cuEventRecord",
                     "cudaStreamWaitEvent", "cuStreamWaitEvent", "cudaStreamSynchronize",
                     "cuStreamSynchronize", "cudaDeviceSynchronize", "cuCtxSynchronize"});

  const auto copies = file.all<CopyRecord>();
  REQUIRE(copies.size() == 6);
  for (const CopyRecord& copy : copies) {
    const bool in = copy.direction == 1;
    CHECK(copy.bytes == (in ? 4096 : 4));
    CHECK(copy.end - copy.start == (in ? 3000 : 1000));
    CHECK(copy.from == (in ? 2 : 3));  // pinned in, pageable out
    CHECK(copy.to == (in ? 3 : 1));
    CHECK(copy.asynchronous == (in ? 1 : 0));
    CHECK(copy.from_device == 0);
  }
  const auto sets = file.all<SetRecord>();
  REQUIRE(sets.size() == 3);
  CHECK(sets[0].bytes == 1024);
  CHECK(sets[0].memory == 3);

  // A stream's wait names the very recording of the event that it waits for.
  const auto syncs = file.all<SyncRecord>();
  const auto events = file.all<EventRecord>();
  REQUIRE(events.size() == 3);
  REQUIRE(syncs.size() == 9);
  for (const SyncRecord& sync : syncs) {
    CHECK(sync.start <= sync.end);
    if (sync.type != 2) {
      CHECK(sync.event == 0);
      CHECK(sync.stream == (sync.type == 3 ? 7 : 0));
      continue;
    }
    CHECK(sync.stream == 9);
    CHECK(sync.event == 1 + 1);
    CHECK(std::count_if(events.begin(), events.end(), [&](const EventRecord& event) {
            return event.instant == sync.event_instant && event.stream == 7;
          }) == 1);
  }

  const auto devices = file.all<DeviceRecord>();
  REQUIRE(devices.size() == 1);
  CHECK(file.text(devices[0].name) == "Mock H100");
  CHECK(file.text(devices[0].uuid) == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  CHECK(devices[0].multiprocessors == 132);
  CHECK(devices[0].memory_bytes == std::uint64_t{80} << 30);
  CHECK(devices[0].memory_bandwidth == 3352320000000);
  CHECK(devices[0].core_clock == 1980000000);
  CHECK(devices[0].gpu_instance == 0);
  const auto contexts = file.all<ContextRecord>();
  REQUIRE(contexts.size() == 1);
  CHECK(contexts[0].null_stream == 7);
  CHECK(file.fact("cupti.version") == "CUDA 13.0");
  CHECK(file.fact("driver.cuda") == "CUDA 13.0");
  CHECK(file.fact("cupti.path") == mock("libcupti.so.13"));
  CHECK(file.fact("trouble").empty());
}

TEST_CASE("CUPTI of every CUDA from 11.0 on gives the same recording") {
  for (const int version : {13, 14, 15, 17, 18, 19, 20, 23, 26, 28, 130000, 130001, 130300}) {
    INFO(version);
    const bool old = version < 19;
    const GpuRun run =
        run_gpu({"init", "steps", "2", "graph", "1", "peer"},
                {{"MOCK_CUPTI_VERSION", std::to_string(version)},
                 {"REHEARSE_CUPTI", mock(old ? "libcupti_old.so.11.0" : "libcupti.so.13")}});
    CHECK(run.status == 0);
    CHECK(run.errors.empty());
    const test::CapturedTables& file = run.only();
    CHECK(file.lost == 0);
    const auto kernels = file.all<KernelRecord>();
    CHECK(kernels.size() == 2 * 5 + 10);
    for (const KernelRecord& kernel : kernels) {
      CHECK(kernel.end > kernel.start);
      CHECK(kernel.cluster_x == (version >= 18 ? 2 : 0));
      CHECK((kernel.graph_node != 0) == (kernel.graph == 5));
    }
    const auto copies = file.all<CopyRecord>();
    CHECK(copies.size() == 5);
    CHECK(std::count_if(copies.begin(), copies.end(), [](const CopyRecord& copy) {
            return copy.from_device == 1 && copy.to_device == 2 && copy.bytes == 65536;
          }) == 1);
    CHECK(count<SetRecord>(file) == 2);
    CHECK(count<SyncRecord>(file) == 7);
    for (const EventRecord& event : file.all<EventRecord>())
      CHECK((event.instant != 0) == (version >= 26));
    for (const CallRecord& call : file.all<CallRecord>())
      CHECK(file.text(call.name).find("GetDevice") == std::string::npos);
    CHECK(count<DeviceRecord>(file) == 1);
    CHECK(file.text(file.all<DeviceRecord>()[0].name) == "Mock H100");
  }
}

TEST_CASE("a launch of a CUDA graph is recorded by its nodes or as a whole") {
  const GpuRun nodes = run_gpu({"init", "graph", "3"});
  CHECK(count<KernelRecord>(nodes.only()) == 30);
  CHECK(count<GraphLaunchRecord>(nodes.only()) == 0);
  const GpuRun whole = run_gpu({"init", "graph", "3"}, {{kOptionsVariable, "graph=launch"}});
  CHECK(count<KernelRecord>(whole.only()) == 0);
  const auto launches = whole.only().all<GraphLaunchRecord>();
  REQUIRE(launches.size() == 3);
  CHECK(launches[0].graph == 5);
  CHECK(launches[0].end - launches[0].start == 10000);
}

TEST_CASE("additional requests are recorded, and no CUDA work if so requested") {
  CHECK(count<MemoryRecord>(run_gpu({"init", "memory"}).only()) == 0);
  const GpuRun memory = run_gpu({"init", "memory"}, {{kOptionsVariable, "memory"}});
  const auto records = memory.only().all<MemoryRecord>();
  REQUIRE(records.size() == 2);
  CHECK(records[0].operation == 1);
  CHECK(records[1].operation == 2);
  CHECK(records[0].bytes == 1 << 20);
  CHECK(records[0].kind == 3);

  const GpuRun none = run_gpu({"init", "steps", "2"}, {{kOptionsVariable, "device=off"}});
  CHECK(none.only().blocks.empty());
  CHECK(ranges(none.only()) == 8);
  const GpuRun wrong = run_gpu({"init", "steps", "1"}, {{kOptionsVariable, "memory steps=5:2"}});
  CHECK(wrong.errors ==
        "rehearse: REHEARSE_CAPTURE_OPTIONS: 'steps=5:2' is not an option; it has no effect\n");
  CHECK(count<KernelRecord>(wrong.only()) == 5);
}

TEST_CASE("device work of only the chosen steps is recorded") {
  const GpuRun window = run_gpu({"init", "steps", "6"}, {{kOptionsVariable, "steps=2:4"}});
  CHECK(window.errors.empty());
  CHECK(count<KernelRecord>(window.only()) == 2 * 5);
  CHECK(count<CopyRecord>(window.only()) == 2 * 2);
  CHECK(ranges(window.only()) == 2 * 4);
  CHECK(count<DeviceRecord>(window.only()) == 1);

  // Steps 0, 4 and 8, and their neighbours.
  const GpuRun ring =
      run_gpu({"init", "steps", "9"}, {{kOptionsVariable, "ring=1048576 trigger=every4"}});
  CHECK(ring.errors.empty());
  CHECK(count<KernelRecord>(ring.only()) == 7 * 5);
  CHECK(ring.only().lost == 0);
  for (const KernelRecord& kernel : ring.only().all<KernelRecord>())
    CHECK(ring.only().text(kernel.name) != "?");
}

TEST_CASE("the reason why CUPTI cannot record is one line, and the program continues") {
  struct Trouble {
    Variables variables;
    std::string line;
  };
  const std::string path = mock("libcupti.so.13");
  const Trouble troubles[] = {
      {{{"MOCK_CUPTI_SUBSCRIBE", "39"}, {"MOCK_CUPTI_OTHER", "Nsight Systems"}},
       "another profiler (Nsight Systems) uses CUPTI: kernels are not recorded; run without it"},
      {{{"MOCK_CUPTI_SUBSCRIBE", "39"}, {"REHEARSE_CUPTI", mock("libcupti_old.so.11.0")}},
       "another profiler uses CUPTI: kernels are not recorded; run without it"},
      {{{"MOCK_CUPTI_SUBSCRIBE", "15"}, {"MOCK_CUDA_VERSION", "12040"}},
       "CUPTI of CUDA 13.0 (" + path +
           ") is newer than the driver, which has CUDA 12.4: "
           "kernels are not recorded; name an older libcupti in REHEARSE_CUPTI"},
      {{{"MOCK_CUPTI_SUBSCRIBE", "35"}},
       "CUPTI lacks privileges here: kernels are not recorded; see 'rehearse doctor'"},
      {{{"MOCK_CUPTI_SUBSCRIBE", "999"}, {"MOCK_CUPTI_VERSION", "22"}},
       "CUPTI of CUDA 12.4 (" + path +
           ") does not start, error 999: kernels are not recorded; "
           "see 'rehearse doctor'"},
      {{{"MOCK_CUPTI_ENABLE", "39"}},
       "another profiler uses CUPTI: kernels are not recorded; run without it"},
      {{{"REHEARSE_CUPTI", "/absent/libcupti.so"}},
       "CUPTI was not found: kernels are not recorded; install the CUDA toolkit, or name libcupti "
       "in "
       "REHEARSE_CUPTI"},
      {{{"REHEARSE_CUPTI", mock("libcuda.so.1")}},
       "CUPTI was not found: kernels are not recorded; install the CUDA toolkit, or name libcupti "
       "in "
       "REHEARSE_CUPTI"},
  };
  for (const Trouble& trouble : troubles) {
    INFO(trouble.line);
    const GpuRun run = run_gpu({"init", "steps", "2", "exit_code", "4"}, trouble.variables);
    CHECK(run.status == 4 << 8);
    CHECK(run.errors == "rehearse: " + trouble.line + "\n");
    CHECK(run.only().fact("trouble") == trouble.line);
    CHECK(count<KernelRecord>(run.only()) == 0);
    CHECK(ranges(run.only()) == 8);
    CHECK(run.only().ended);
  }
}

TEST_CASE("a driver that does not start is left to the program") {
  const GpuRun run = run_gpu({"init", "steps", "1"}, {{"MOCK_CUDA_INIT", "100"}});
  CHECK(run.status == 0);
  CHECK(run.errors == "gpu_target: cuInit gives 100\n");
  CHECK(run.only().blocks.empty());
  CHECK(ranges(run.only()) == 4);
}

TEST_CASE("records that CUPTI dropped are counted as lost") {
  const GpuRun run = run_gpu({"init", "steps", "1"}, {{"MOCK_CUPTI_DROP", "1234"}});
  CHECK(run.only().lost == 1234);
  CHECK(count<KernelRecord>(run.only()) == 5);
}

TEST_CASE("kernels without times are kept without times") {
  const GpuRun run = run_gpu({"init", "steps", "2"}, {{"MOCK_CUPTI_NO_TIMES", "5"}});
  const auto kernels = run.only().all<KernelRecord>();
  CHECK(kernels.size() == 10);
  CHECK(std::count_if(kernels.begin(), kernels.end(), [](const KernelRecord& kernel) {
          return kernel.start == 0 && kernel.end == 0;
        }) == 2);
}

TEST_CASE("more kernels than all buffers hold are recorded") {
  const GpuRun run = run_gpu({"init", "launches", "150000"});
  CHECK(run.only().lost == 0);
  CHECK(count<KernelRecord>(run.only()) == 150000);
  CHECK(count<CallRecord>(run.only()) == 300000);
}

TEST_CASE("many threads at once") {
  const GpuRun run = run_gpu({"init", "threads", "8"});
  CHECK(run.only().lost == 0);
  CHECK(count<KernelRecord>(run.only()) == 8 * 5 * 5);
  std::set<std::uint64_t> threads;
  for (const CallRecord& call : run.only().all<CallRecord>()) threads.insert(call.thread);
  CHECK(threads.size() == 8);
}

TEST_CASE("records that come late come before the end") {
  const GpuRun late = run_gpu({"init", "steps", "4"}, {{"MOCK_CUPTI_LATE", "1"}});
  CHECK(count<KernelRecord>(late.only()) == 20);
  // A request that takes long holds the end up, but for no longer than it takes.
  const GpuRun slow = run_gpu({"init", "steps", "4"}, {{"MOCK_CUPTI_FLUSH_MS", "300"}});
  CHECK(count<KernelRecord>(slow.only()) == 20);
  CHECK(slow.errors.empty());
}

TEST_CASE("a device that hangs does not hold the end of the program for more than seconds") {
  const GpuRun run =
      run_gpu({"init", "steps", "1", "exit_code", "3"}, {{"MOCK_CUPTI_FLUSH_MS", "60000"}});
  CHECK(run.status == 3 << 8);
  CHECK(run.errors == "rehearse: the last kernels were not delivered within 5 s of the end\n");
  CHECK(ranges(run.only()) == 4);
}

TEST_CASE("a process that is ended loses its last second of kernels at most") {
  const std::pair<std::string, int> endings[] = {
      {"_exit", 5 << 8}, {"term", SIGTERM}, {"abort", SIGABRT}, {"kill", SIGKILL}};
  std::vector<std::pair<fs::path, std::unique_ptr<test::Running>>> running;
  for (const auto& ending : endings) {  // all at once: each sleeps
    const fs::path folder = test::scratch_folder();
    running.emplace_back(folder, start_gpu({"init", "steps", "20", "sleep", "2600", "steps", "3",
                                            "end_by", ending.first},
                                           folder));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    INFO(endings[i].first);
    CHECK((running[i].second->wait() & ~0x80) == endings[i].second);  // with or without a core
    CHECK(running[i].second->errors().empty());
    const auto files = test::captured_tables(running[i].first);
    REQUIRE(files.size() == 1);
    CHECK_FALSE(files[0].ended);
    CHECK(files[0].damaged == 0);
    CHECK(count<KernelRecord>(files[0]) >= 100);
    CHECK(count<KernelRecord>(files[0]) <= 115);
  }
}

TEST_CASE("a device that is reset gives its records before") {
  // Nothing comes unless asked for with force, and the end asks for nothing.
  const Variables late = {{"MOCK_CUPTI_LATE", "1"}};
  const GpuRun without = run_gpu({"init", "steps", "2", "sleep", "1200", "end_by", "_exit"}, late);
  CHECK(count<KernelRecord>(without.only()) == 0);
  const GpuRun with =
      run_gpu({"init", "steps", "2", "reset", "sleep", "1200", "end_by", "_exit"}, late);
  CHECK(count<KernelRecord>(with.only()) == 10);
}

TEST_CASE("a forked child neither takes the parent's kernels nor loses them") {
  const GpuRun run = run_gpu({"init", "steps", "2", "fork", "steps", "1"});
  CHECK(run.status == 0);
  CHECK(run.errors.empty());
  REQUIRE(run.files.size() == 2);
  for (const test::CapturedTables& file : run.files) {
    CHECK(file.ended);
    const bool child = file.process.forked_from != 0;
    CHECK(count<KernelRecord>(file) == (child ? 0 : 15));
    CHECK(ranges(file) == (child ? 1 : 12));
  }
}

TEST_CASE("the driver may start at any time, again and again, or never") {
  CHECK(count<KernelRecord>(run_gpu({"steps", "1", "init", "steps", "2", "init"}).only()) == 10);
  CHECK(run_gpu({"init", "init"}).files.size() == 1);
  CHECK(count<KernelRecord>(run_gpu({"steps", "2"}).only()) == 0);
}

TEST_CASE("a folder that cannot be written is reported once, and the program continues") {
  const GpuRun run =
      run_gpu({"init", "steps", "2", "exit_code", "9"}, {{"REHEARSE_CAPTURE_DIR", "/proc/none"}});
  CHECK(run.status == 9 << 8);
  CHECK(run.errors ==
        "rehearse: cannot use '/proc/none': No such file or directory; this process is not "
        "recorded\n");
  CHECK(run.files.empty());
}

TEST_CASE("NVIDIA's CUPTI without a driver is refused by its name", "[cupti]") {
  const fs::path real = REHEARSE_CUPTI_LIBRARY;
  if (real.empty() || !fs::exists(real)) {
    WARN("skipped: no libcupti was found here");
    return;
  }
  const GpuRun run = run_gpu({"init", "steps", "1", "exit_code", "2"}, {{"REHEARSE_CUPTI", real}});
  if (run.errors.empty()) {
    WARN("skipped: a driver is here");
    return;
  }
  CHECK(run.status == 2 << 8);
  CHECK(run.errors.find("does not start, error") != std::string::npos);
  CHECK(run.errors.find("libcupti.so") != std::string::npos);
  CHECK(ranges(run.only()) == 4);
}

}  // namespace
}  // namespace rehearse
