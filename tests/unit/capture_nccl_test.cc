// What NCCL tells through its profiler interface is what is in the capture, whatever its version.
// A program plays NCCL.
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "profiler/capture/nccl_abi.h"
#include "sim/base/file.h"
#include "tests/support/capture_records.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace capture;

/// Runs one way of using the plugin; its folder.
fs::path record(std::vector<std::string> arguments, const std::string& options = "",
                int expected = 0) {
  const fs::path folder = test::scratch_folder();
  arguments.insert(arguments.begin(),
                   {test::capture_program("capture_nccl_plugin_client"), test::capture_library()});
  auto variables = test::recording_to(folder);
  variables["REHEARSE_CAPTURE_OPTIONS"] = options;
  test::Running running(arguments, variables, folder);
  const int status = running.wait();
  INFO(running.errors());
  REQUIRE(status == expected);
  return folder;
}

test::CaptureRecords only(const fs::path& folder) {
  auto files = test::records_of(folder);
  REQUIRE(files.size() == 1);
  return files[0];
}

constexpr std::uint64_t kCommunicator = 0xfeedfacecafe0001;

TEST_CASE("communicators and collectives of every version of NCCL's interface") {
  for (const int version : {3, 4, 5, 6}) {
    INFO("version " << version);
    const fs::path folder = record({"basics", std::to_string(version)}, "channels");
    const test::CaptureRecords records = only(folder);
    CHECK(records.lost() == 0);

    const int asked = nccl::kCollective | nccl::kSendReceive | nccl::kGroupCall |
                      nccl::kCollectiveCall | nccl::kSendReceiveCall | nccl::kKernelLaunch |
                      (version > 3 ? int{nccl::kKernelChannel} : 0);
    CHECK(read_file(folder / "stdout.txt").value() == "mask " + std::to_string(asked) + "\n");

    const auto communicators = records.of<CommunicatorRecord>();
    REQUIRE(communicators.size() == 1);
    CHECK(communicators[0].communicator == (version > 3 ? kCommunicator : 0));
    CHECK(communicators[0].ranks == (version > 3 ? 8 : 0));
    CHECK(communicators[0].rank == (version > 3 ? 3 : 0));
    CHECK(communicators[0].nodes == (version > 3 ? 2 : 0));
    CHECK(records.text(communicators[0].name) == (version > 3 ? "world" : ""));

    const auto collectives = records.of<CollectiveRecord>();
    REQUIRE(collectives.size() == 4);
    const CollectiveRecord& reduce = collectives[0];
    CHECK(records.text(reduce.function) == "AllReduce");
    CHECK(records.text(reduce.datatype) == "Bfloat16");
    CHECK(records.text(reduce.algorithm) == "RING");
    CHECK(records.text(reduce.protocol) == "SIMPLE");
    CHECK(reduce.communicator == kCommunicator);
    CHECK(reduce.count == 1000);
    CHECK(reduce.bytes == 2000);
    CHECK(reduce.sequence == 42);
    CHECK(reduce.channels == 24);
    CHECK(reduce.warps == 16);
    CHECK(reduce.peer == 1);  // root 0
    CHECK(reduce.start <= reduce.end);
    CHECK(reduce.thread != 0);

    // The program's own type and count, where NCCL turned them into bytes and tells the call.
    const CollectiveRecord& gather = collectives[1];
    CHECK(records.text(gather.function) == "AllGather");
    CHECK(gather.bytes == 2000);
    CHECK(records.text(gather.datatype) == (version >= 5 ? "Float32" : "Int8"));
    CHECK(gather.count == (version >= 5 ? 500 : 2000));
    CHECK(gather.sequence == 8);

    const CollectiveRecord& send = collectives[2];
    CHECK(records.text(send.function) == "Send");
    CHECK(send.bytes == 1200);
    CHECK(send.peer == 6);
    CHECK(send.sequence == 0);
    CHECK(send.communicator == kCommunicator);
    CHECK(send.channels == (version > 3 ? 2 : 0));

    // Open when the communicator ended.
    CHECK(records.text(collectives[3].function) == "Reduce");
    CHECK(collectives[3].end == 0);

    if (version >= 5) {
      CHECK(reduce.asked <= reduce.launch_start);
      CHECK(reduce.launch_start + 500000 <= reduce.launch_end);  // the launch takes 1 ms
      CHECK(reduce.launch_end <= reduce.start);
      CHECK(gather.launch_start == reduce.launch_start);
      CHECK(reduce.stream == 0x5000);
      CHECK(reduce.captured == 1);
      CHECK(send.asked == 0);
    } else {
      CHECK(reduce.launch_start == 0);
      CHECK(reduce.launch_end == 0);
      CHECK(reduce.asked == 0);
    }

    const auto kernels = records.of<CollectiveKernelRecord>();
    REQUIRE(kernels.size() == (version > 3 ? 2 : 0));
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      CHECK(kernels[i].call == reduce.call);
      CHECK(kernels[i].channel == i);
      CHECK(kernels[i].gpu_start == 1000 + i);
      CHECK(kernels[i].gpu_end == 5000 + i);
    }
  }
}

TEST_CASE("kernels are recorded channel by channel only on request") {
  const fs::path folder = record({"basics", "5"});
  CHECK(read_file(folder / "stdout.txt").value().find("mask 3846\n") == 0);  // without bit 6
}

TEST_CASE("many threads with communicators that end in between lose nothing") {
  for (const char* version : {"3", "5"}) {
    const test::CaptureRecords records = only(record({"threads", version, "8"}));
    CHECK(records.lost() == 0);
    CHECK(records.of<CommunicatorRecord>().size() == 800);
    std::map<std::uint64_t, std::set<std::uint64_t>> sequences;
    std::set<std::uint64_t> numbers;
    for (const CollectiveRecord& collective : records.of<CollectiveRecord>()) {
      sequences[collective.communicator].insert(collective.sequence);
      numbers.insert(collective.call);
      CHECK(collective.bytes == 256);
    }
    CHECK(numbers.size() == 16000);
    CHECK(sequences.size() == 800);
    for (const auto& [communicator, found] : sequences) CHECK(found.size() == 20);
  }
}

TEST_CASE("events without number and communicators without end are accepted") {
  const test::CaptureRecords records = only(record({"exhaust", "5", "20000"}));
  const std::size_t kept = records.of<CollectiveRecord>().size();
  CHECK(kept > 8000);
  CHECK(kept + records.lost() == 20001);  // one after the end, of no communicator
  CHECK(records.of<CommunicatorRecord>().size() == 3001);
}

TEST_CASE("a forked process records its own collectives") {
  const auto files = test::records_of(record({"fork", "5"}));
  REQUIRE(files.size() == 2);
  std::multiset<std::string> functions;
  for (const test::CaptureRecords& records : files)
    for (const CollectiveRecord& collective : records.of<CollectiveRecord>())
      functions.insert(records.text(collective.function));
  CHECK(functions.count("AllGather") == 1);
  // Both processes stop what was open before; each in its own file.
  CHECK(functions.count("AllReduce") == 2);
}

TEST_CASE("if nothing can be recorded, NCCL continues without the plugin") {
  const fs::path folder = test::scratch_folder();
  test::Running running({test::capture_program("capture_nccl_plugin_client"),
                         test::capture_library(), "refused", "3"},
                        {{"REHEARSE_CAPTURE_DIR", folder / "missing"}}, folder);
  CHECK(running.wait() == 0);
  CHECK(running.errors().find("this process is not recorded") != std::string::npos);
}

}  // namespace
}  // namespace rehearse
