// What NVML tells of the boards is what is in the capture. A library of the test's plays NVML.
#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "tests/support/capture_records.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace capture;

struct Run {
  int status;
  std::string errors;
  std::vector<test::CaptureRecords> files;
};

/// A program that lives for some milliseconds, with the mock in `nvml` ("" none).
Run run(std::map<std::string, std::string> variables,
        std::vector<std::string> how = {"exit", "150"}, const std::string& nvml = "mock_nvml") {
  const fs::path folder = test::scratch_folder();
  how.insert(how.begin(), test::capture_program("capture_power_client"));
  variables.merge(test::recording_to(folder));
  variables.emplace("REHEARSE_CAPTURE_OPTIONS", "power=100");
  variables.emplace("MOCK_NVML_POWER", "100000,300000,200000");
  variables["LD_LIBRARY_PATH"] =
      nvml.empty() ? folder.string() : test::capture_program(nvml).string();
  test::Running running(how, variables, folder);
  const int status = running.wait();
  return {status, running.errors(), test::records_of(folder)};
}

const test::CaptureRecords& only_file(const Run& run) {
  INFO(run.errors);
  REQUIRE(WIFEXITED(run.status));
  REQUIRE(WEXITSTATUS(run.status) == 7);
  REQUIRE(run.files.size() == 1);
  CHECK(run.files[0].lost() == 0);
  return run.files[0];
}

TEST_CASE("power, energy, clocks and temperature are read at intervals") {
  const Run result = run({}, {"exit", "300"});
  const test::CaptureRecords& records = only_file(result);
  const auto readings = records.of<PowerRecord>();
  REQUIRE(readings.size() >= 5);  // 30 on a machine that is not busy
  REQUIRE(readings.size() <= 35);
  constexpr std::uint64_t kPower[] = {100000, 300000, 200000};
  for (std::size_t i = 0; i < readings.size(); ++i) {
    CHECK(records.text(readings[i].uuid) == "GPU-0-of-the-mock");
    CHECK(readings[i].power == kPower[i % 3]);
    CHECK(readings[i].core_clock == 1980000000);
    CHECK(readings[i].clock_reasons == 4);
    if (i > 0) CHECK(readings[i].time > readings[i - 1].time);
  }
  // What is costly or changes slowly: at first and at last.
  CHECK(readings.front().energy == 1000000);
  CHECK(readings.front().temperature == 45);
  CHECK(readings.front().memory_clock == 3201000000);
  CHECK(readings[1].energy == 0);
  CHECK(readings[1].temperature == 0);
  CHECK(readings.back().energy == 1005000);

  const auto boards = records.of<BoardRecord>();
  REQUIRE(boards.size() == 1);
  CHECK(records.text(boards[0].uuid) == "GPU-0-of-the-mock");
  CHECK(records.text(boards[0].name) == "Mock H200");
  CHECK(boards[0].instance == 0);
  CHECK(boards[0].power_limit == 700000);
  CHECK(records.facts("driver") == "580.65.06\n");
  CHECK(records.facts("nvml").empty());
}

TEST_CASE("a field's value is read in every type that a driver may give") {
  for (const char* type : {"0", "1", "2", "3", "4", "5", "6"}) {
    INFO("type " << type);
    const Run result = run({{"MOCK_NVML_FIELD_TYPE", type}, {"MOCK_NVML_POWER", "60000"}});
    const auto readings = only_file(result).of<PowerRecord>();
    REQUIRE(readings.size() >= 2);
    CHECK(readings[1].power == 60000);
  }
  // A type that is none: the average takes its place.
  const Run other = run({{"MOCK_NVML_FIELD_TYPE", "99"}, {"MOCK_NVML_POWER", "60000"}});
  CHECK(only_file(other).of<PowerRecord>()[0].power == 60000);
}

TEST_CASE("an old driver's library gives what it has") {
  const Run result = run({}, {"exit", "150"}, "mock_old_nvml");
  const auto readings = only_file(result).of<PowerRecord>();
  REQUIRE(readings.size() >= 2);
  CHECK(readings[0].power == 100000);
  CHECK(readings[0].energy == 0);
  CHECK(readings[0].clock_reasons == 8);
  CHECK(only_file(result).of<BoardRecord>()[0].power_limit == 0);
}

TEST_CASE("boards are those that CUDA may use") {
  const auto boards = [](const char* visible) {
    const Run result =
        run({{"MOCK_NVML_BOARDS", "3"}, {"CUDA_VISIBLE_DEVICES", visible}}, {"exit", "60"});
    const test::CaptureRecords& records = only_file(result);
    std::string found;
    for (const BoardRecord& board : records.of<BoardRecord>())
      found += std::to_string(board.index) + " ";
    std::string read;
    for (const char* name : {"GPU-0-of-the-mock", "GPU-1-of-the-mock", "GPU-2-of-the-mock"})
      for (const PowerRecord& reading : records.of<PowerRecord>())
        if (records.text(reading.uuid) == name) {
          read += std::string(1, name[4]) + " ";
          break;
        }
    CHECK(found == read);
    return found;
  };
  CHECK(boards("1") == "1 ");
  CHECK(boards("2,0") == "0 2 ");
  CHECK(boards("GPU-2-of-the-mock") == "2 ");
  CHECK(boards("GPU-1") == "1 ");  // CUDA takes the begin of one
  CHECK(boards("0,-1,2") == "0 ");
  CHECK(boards("").empty());
  CHECK(boards("GPU-7").empty());
}

TEST_CASE("MIG instances carry their identity and their share of the board") {
  const auto instances = [](std::map<std::string, std::string> variables) {
    variables["MOCK_NVML_MIG"] = "60,16";
    const Run result = run(variables, {"exit", "60"});
    const test::CaptureRecords& records = only_file(result);
    std::string found;
    for (const BoardRecord& board : records.of<BoardRecord>()) {
      CHECK(records.text(board.uuid) == "GPU-0-of-the-mock");
      CHECK(board.all_multiprocessors == 76);
      CHECK(board.compute_instance == 1);
      found += records.text(board.instance) + " " + std::to_string(board.multiprocessors) + " " +
               std::to_string(board.gpu_instance - 1) + "; ";
    }
    for (const PowerRecord& reading : records.of<PowerRecord>())
      CHECK(records.text(reading.uuid) == "GPU-0-of-the-mock");
    CHECK(records.of<PowerRecord>().size() >= 2);
    return found;
  };
  CHECK(instances({}) == "MIG-0-0 60 2; MIG-0-1 16 3; ");
  CHECK(instances({{"CUDA_VISIBLE_DEVICES", "MIG-0-1"}}) == "MIG-0-1 16 3; ");
}

TEST_CASE("readings that NVML refuses stop, and the others continue") {
  const Run energy = run({{"MOCK_NVML_ERRORS", "energy:3 reasons:3 temperature:15"}});
  const auto readings = only_file(energy).of<PowerRecord>();
  REQUIRE(readings.size() >= 2);
  CHECK(readings[0].power == 100000);
  CHECK(readings[0].energy == 0);
  CHECK(readings[0].clock_reasons == 0);
  CHECK(readings[0].temperature == 0);

  const Run average = run({{"MOCK_NVML_ERRORS", "fields:3"}});
  CHECK(only_file(average).of<PowerRecord>()[0].power == 100000);

  const Run none = run({{"MOCK_NVML_ERRORS", "fields:3 power:3 energy:4"}});
  CHECK(only_file(none).of<PowerRecord>().empty());
  CHECK(only_file(none).facts("nvml") == "a board does not report its power\n");

  const Run refused = run({{"MOCK_NVML_ERRORS", "init:9"}});
  CHECK(only_file(refused).facts("nvml") == "nvmlInit gave NVML's error 9; no power is recorded\n");
}

TEST_CASE("without NVML, or without a request for power, nothing is read") {
  const Run absent = run({}, {"exit", "60"}, "");
  CHECK(only_file(absent).of<PowerRecord>().empty());
  CHECK(only_file(absent).facts("nvml") ==
        "libnvidia-ml.so.1 was not found; no power is recorded\n");
  CHECK(absent.errors.empty());
  for (const char* options : {"power=0", "device=off power=10"}) {
    const Run off = run({{"REHEARSE_CAPTURE_OPTIONS", options}}, {"exit", "60"});
    REQUIRE(WEXITSTATUS(off.status) == 7);
    CHECK(off.files.empty());
  }
}

TEST_CASE("reading ends with the process, when it is stopped, and in no forked child") {
  const Run stopped = run({}, {"stop", "100"});
  const auto before = only_file(stopped).of<PowerRecord>();
  REQUIRE(before.size() >= 2);
  CHECK(before.back().energy > 0);
  CHECK(before.back().time - before.front().time < 190000000);

  const Run forked = run({}, {"fork", "100"});
  CHECK(forked.status == 0);
  REQUIRE(forked.files.size() == 1);
  const auto readings = forked.files[0].of<PowerRecord>();
  REQUIRE(readings.size() >= 3);
  CHECK(readings.back().time - readings.front().time > 100000000);  // the parent's goes on

  // Each call takes longer than the period, and the end does not wait for many.
  const Run slow = run({{"MOCK_NVML_MS", "20"}, {"MOCK_NVML_BOARDS", "2"}}, {"exit", "100"});
  CHECK(WEXITSTATUS(slow.status) == 7);
  const Run killed = run({}, {"_exit", "700"});
  CHECK(WEXITSTATUS(killed.status) == 7);
  REQUIRE(killed.files.size() == 1);
  CHECK(killed.files[0].of<PowerRecord>().size() >= 5);
}

}  // namespace
}  // namespace rehearse
