// What the launcher reads back from the folder of a recording, and what it tells the library.
#include <fstream>

#include <catch2/catch.hpp>

#include "profiler/launch/launch.h"
#include "profiler/launch/session.h"
#include "tests/support/capture_builder.h"
#include "tests/support/data.h"

namespace rehearse::capture {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_CASE("options become the words that the library reads") {
  CHECK(option_words({}) == "graph=node power=10");
  Options all;
  all.device = false;
  all.graph = Options::Graph::kLaunch;
  all.memory = all.jit = all.channels = true;
  all.power = 0;
  all.first_step = 10;
  all.end_step = 20;
  all.ring = 1 << 20;
  std::strcpy(all.trigger, "p99");
  CHECK(option_words(all) ==
        "graph=launch power=0 device=off memory jit channels steps=10:20 ring=1048576 "
        "trigger=p99");
  Options open;
  open.first_step = 5;
  CHECK(option_words(open) == "graph=node power=10 steps=5:");
}

TEST_CASE("the records of a process are counted by kind") {
  const fs::path folder = test::scratch_folder();
  test::CaptureBuilder capture;
  capture.process({.host = "h", .process = 7, .command = {"a"}})
      .text(1, "driver.cuda")
      .text(2, "CUDA 13.0")
      .text(3, "trouble")
      .text(4, "no CUPTI")
      .rows(7, {{.time = 5, .kind = RowKind::kRange},
                {.time = 6, .kind = RowKind::kMark},
                {.time = 7, .span = 1, .kind = RowKind::kStart},
                {.time = 8, .span = 1, .kind = RowKind::kEnd}})
      .records(7, std::vector<KernelRecord>(3))
      .records(7, std::vector<CopyRecord>(2))
      .records(7, std::vector<SetRecord>(1))
      .records(7, std::vector<CallRecord>(9))
      .records(7, std::vector<GraphLaunchRecord>(4))
      .records(7, std::vector<CollectiveRecord>(5))
      .records(7, std::vector<FactRecord>{{.key = 1, .value = 2}, {.key = 3, .value = 4}})
      .loss(11);
  write(folder / "h-7.cap", capture.bytes());
  write(folder / "h-7.hello", "a b\n");
  write(folder / "h-8.hello", "said hello and no more\n");

  const std::vector<LaunchedProcess> processes = processes_in(folder);
  REQUIRE(processes.size() == 2);
  const LaunchedProcess& p = processes[0];
  CHECK(p.name == "h-7");
  CHECK(p.command == "a b");
  CHECK(p.recorded);
  CHECK(p.device);
  CHECK_FALSE(p.ended);  // no trailer
  CHECK(p.counts.ranges == 2);
  CHECK(p.counts.marks == 1);
  CHECK(p.counts.kernels == 3);
  CHECK(p.counts.copies == 3);
  CHECK(p.counts.calls == 9);
  CHECK(p.counts.graphs == 4);
  CHECK(p.counts.collectives == 5);
  CHECK(p.counts.lost == 11);
  REQUIRE(p.facts.size() == 2);
  CHECK(p.facts[0] == std::pair<std::string, std::string>("driver.cuda", "CUDA 13.0"));
  CHECK(p.facts[1] == std::pair<std::string, std::string>("trouble", "no CUPTI"));
  CHECK_FALSE(processes[1].recorded);
  CHECK_FALSE(processes[1].device);

  Counts sum;
  for (const LaunchedProcess& process : processes) sum += process.counts;
  CHECK(sum.kernels == 3);
  CHECK(sum.lost == 11);
}

TEST_CASE("board readings and facts alone are not a recording of the process") {
  const fs::path folder = test::scratch_folder();
  test::CaptureBuilder capture;
  capture.process({.host = "h", .process = 7})
      .records(7, std::vector<PowerRecord>(3))
      .records(7, std::vector<FactRecord>{{.key = 99, .value = 98}})  // texts that are not there
      .trailer(4, 0);
  write(folder / "h-7.cap", capture.bytes());
  write(folder / "h-7.hello", "a\n");
  const std::vector<LaunchedProcess> processes = processes_in(folder);
  REQUIRE(processes.size() == 1);
  CHECK_FALSE(processes[0].recorded);
  CHECK_FALSE(processes[0].device);
  CHECK(processes[0].ended);
  CHECK(processes[0].facts.empty());
}

}  // namespace
}  // namespace rehearse::capture
