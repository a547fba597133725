#include "tests/validation/studies/throughput/step_tables.h"

#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

std::filesystem::path table(const std::string& text) {
  const std::filesystem::path path = test::scratch_folder() / "steps.csv";
  std::ofstream(path) << text;
  return path;
}

/// The one line that reading fails with, without the folder.
template <class T>
std::string problem(const Result<T>& read) {
  REQUIRE_FALSE(read);
  REQUIRE(read.error().diagnostics.size() == 1);
  const std::string line = to_string(read.error());
  return line.substr(line.find("steps.csv"));
}

TEST_CASE("placements are digits, or nodes and replicas spread evenly") {
  const auto placed = read_placed_steps(
      table("placement,local_bsz,step_time,sync_time\n134,8,0.5,0.1\n1,4,0.25,0\n"));
  REQUIRE(placed);
  CHECK(placed->at(0).devices == std::vector<std::uint32_t>{4, 3, 1});
  CHECK(placed->at(0).ranks() == 8);
  CHECK(placed->at(0).batch == 8);
  CHECK(placed->at(1).step.ms() == Approx(250));
  const auto spread = read_placed_steps(
      table("local_bsz,step_time,sync_time,num_nodes,num_replicas\n4,0.5,0.1,3,8\n"));
  REQUIRE(spread);
  CHECK(spread->at(0).devices == std::vector<std::uint32_t>{3, 3, 2});
}

TEST_CASE("a wrong row of placements is one line") {
  const std::string heading = "placement,local_bsz,step_time\n";
  const auto read = [&](const std::string& row) {
    return problem(read_placed_steps(table(heading + row)));
  };
  CHECK(read("10,4,0.5\n") ==
        "steps.csv:2: placement: '10' is no placement; the devices of each node, a digit from 1 "
        "to 9 a node");
  CHECK(read("1,4,0.5\n,4,0.5\n").starts_with("steps.csv:3: placement: '' is no placement"));
  CHECK(read("1,4,0\n") == "steps.csv:2: step_time: '0' is no such thing; seconds above zero");
  CHECK(read("1,,0.5\n") == "steps.csv:2: local_bsz: '' is no such thing; samples of a device");
  CHECK(read("1,4,soon\n").starts_with("steps.csv:2: step_time: "));
  CHECK(
      problem(read_placed_steps(table("num_nodes,num_replicas,local_bsz,step_time\n3,2,4,1\n"))) ==
      "steps.csv:2: num_replicas: 2 devices on 3 nodes; a device on each node at least");
  CHECK(problem(read_placed_steps(table("num_nodes,local_bsz,step_time\n3,4,1\n")))
            .find("num_replicas") != std::string::npos);
}

const std::string kIsolated =
    "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,steps_per_s\n";

TEST_CASE("steps of Gavel's jobs are of a worker") {
  const auto jobs = read_isolated_jobs(table(kIsolated + "physical,k80,no,LM,5,4,32\n"
                                                         "physical,k80,yes,A3C,,1,3.5\n"
                                                         "physical,k80,yes,ResNet-50,128,1,0.0\n"));
  REQUIRE(jobs);
  REQUIRE(jobs->rows.size() == 1);
  const IsolatedJob& row = jobs->rows.front();
  CHECK(row.job == "LM");
  CHECK_FALSE(row.one_server);
  // 32 steps a second of 4 workers together.
  CHECK(row.step.ms() == Approx(125));
  CHECK(jobs->left_out ==
        std::vector<std::string>{"physical k80 A3C, 1 worker: its batch is not stated",
                                 "physical k80 ResNet-50 batch 128, 1 worker: did not fit"});
}

TEST_CASE("a wrong row of Gavel's is one line") {
  const auto read = [&](const std::string& row) {
    return problem(read_isolated_jobs(table(kIsolated + row)));
  };
  CHECK(read("p,k80,maybe,LM,5,1,32\n") == "steps.csv:2: gpus_on_one_server: 'maybe'; yes or no");
  CHECK(read("p,k80,yes,LM,5,1.5,32\n") ==
        "steps.csv:2: num_gpus: 1.5 is not a number of devices; a number of devices");
  CHECK(read("p,k80,yes,LM,5,1,-1\n") ==
        "steps.csv:2: steps_per_s: '-1' is no rate; steps a second, 0 where it did not fit");
  CHECK(read("p,k80,yes,LM,-5,1,3\n").starts_with("steps.csv:2: batch_size_per_gpu: "));
}

TEST_CASE("throughputs of Lambda's are of a GPU") {
  const auto counted = read_system_throughputs(
      table("system,num_gpu,watt,price,resnet50,ncf\n8x A100 80GB,8.0,3200,1,11439,0.0\n"));
  REQUIRE(counted);
  REQUIRE(counted->size() == 1);
  CHECK(counted->front().job == "resnet50");
  CHECK(counted->front().gpus == 8);
  CHECK(counted->front().per_gpu == Approx(11439.0 / 8));
  const auto named = read_system_throughputs(
      table("system,resnet50\nLambdaOD_1x_Texas_2xH100_80GB_SXM5_v2#1,5531\n"));
  REQUIRE(named);
  CHECK(named->front().gpus == 2);
  CHECK(problem(read_system_throughputs(table("system,resnet50\nH100,5531\n"))) ==
        "steps.csv:2: system: 'H100' does not count its GPUs; a name with, say, 8xH100, or a "
        "column num_gpu");
  CHECK(problem(read_system_throughputs(table("system,num_gpu,resnet50\nA,1,-3\n"))) ==
        "steps.csv:2: resnet50: -3 is no throughput; a number above zero, 0 where it was not "
        "measured");
}

}  // namespace
}  // namespace rehearse::cli
