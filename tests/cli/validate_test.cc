// validate: files of measurements of every kind, judged row by row.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

Json judged(const std::string& name, const std::string& text) {
  return test::json_of({"validate", "--quiet", test::write_scratch(name, text).string()});
}

double number(const Json& of, const char* key) { return of[key].get<double>(); }

// A job on four columns of a job file is what `simulate` predicts of that file.
TEST_CASE("validate: a row of jobs is the job file of its columns") {
  const Json json =
      judged("mine.csv",
             "name,workload.model,workload.sequence,training.global_batch,plan.data,cluster.device,"
             "cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n"
             "one,llama3_8b,2048,8,8,h100_sxm5_80,8,1,nvswitch,0.5\n");
  const std::string job =
      test::write_scratch(
          "job.yaml",
          "workload: {model: llama3_8b, sequence: 2048}\ntraining: {global_batch: 8}\n"
          "plan: {data: 8}\ncluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 1, "
          "intra_node: nvswitch}\n")
          .string();
  const Json step = test::json_of({"simulate", job, "--fidelity", "closed"})["step_time"];
  const Json& row = json["rows"][0];
  for (const char* key : {"value", "low", "high"})
    CHECK(number(row["predicted"], key) == Approx(number(step, key)));
  CHECK(row["suite"] == "jobs/mine");
  CHECK(row["constants"] == "source_left_out");
  CHECK(number(row, "error") == Approx(number(step, "value") / 0.5 - 1));
  CHECK(json["suites"][0]["blind_rows"] == 1);
}

// Both columns of a row of servers are what `simulate` predicts of its job, and an unknown key is a
// column that is not used.
TEST_CASE("validate: a row of servers is the job file of its columns") {
  const Json json =
      judged("servers.csv",
             "serve.model,serve.framework,serve.version,serve.load.closed,serve.load.requests,"
             "serve.load.input,serve.load.output,serve.color,cluster.device,ttft_s,tpot_s\n"
             "llama3_8b,vllm,0.11,8,40,\"{uniform: [819, 1024]}\",64,red,h100_sxm5_80,0.1,0.01\n"
             "llama3_8b,vllm,0.11,8,40,,64,red,h100_sxm5_80,0.1,0.01\n");
  const std::string job =
      test::write_scratch("serve.yaml",
                          "serve: {model: llama3_8b, framework: vllm, version: \"0.11\", load: "
                          "{closed: 8, requests: 40, input: {uniform: [819, 1024]}, output: 64}}\n"
                          "cluster: {device: h100_sxm5_80}\n")
          .string();
  const Json served = test::json_of({"simulate", job});
  for (const std::string name : {"ttft", "tpot"}) {
    Json row;
    for (const Json& each : json["rows"])
      if (each["suite"] == name + "/servers") row = each;
    for (const char* key : {"value", "low", "high"})
      CHECK(number(row["predicted"], key) == Approx(number(served[name]["mean"], key)));
  }
  CHECK(json["rows"].size() == 2);
  REQUIRE(json["skipped"].size() == 2);
  CHECK(json["skipped"][0]["count"] == 2);  // the second row, once per kind
  CHECK(json["skipped"][1]["count"] == 1);  // the column
}

TEST_CASE("validate: the fastest of several open choices counts") {
  const std::string head =
      "case,name,choice,use,workload.model,training.global_batch,training.microbatch,plan.data,"
      "cluster.device,cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n";
  const auto row = [](const std::string& choice, int microbatch) {
    return "a,one," + choice + ",fitted,gpt2,64," + std::to_string(microbatch) +
           ",8,h100_sxm5_80,8,1,nvswitch,0.5\n";
  };
  const Json apart = judged("a.csv", head + row("", 1) + row("", 8));
  const Json open = judged("a.csv", head + row("1", 1) + row("8", 8));
  REQUIRE(apart["rows"].size() == 2);
  REQUIRE(open["rows"].size() == 1);
  CHECK(open["rows"][0]["predicted"]["value"] ==
        std::min(number(apart["rows"][0]["predicted"], "value"),
                 number(apart["rows"][1]["predicted"], "value")));
  CHECK(open["suites"][0]["fitted_rows"] == 1);
}

// Two plans of one job on eight devices, and one on four: only the two are a choice. Tensor
// parallelism is predicted to be slower; where it was measured faster, the choice costs 25 %.
TEST_CASE("validate: plans of one job on equal devices are a choice") {
  const std::string head =
      "case,name,group,workload.model,training.global_batch,plan.data,plan.tensor,cluster.device,"
      "cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n";
  const auto row = [](const std::string& data, const std::string& tensor, const std::string& group,
                      const std::string& per_node, const std::string& measured) {
    return "mine/" + data + ",dp" + data + "," + group + ",gpt2,64," + data + "," + tensor +
           ",h100_sxm5_80," + per_node + ",1,nvswitch," + measured + "\n";
  };
  const Json json =
      judged("mine.csv", head + row("8", "1", "", "8", "0.5") + row("2", "4", "", "8", "0.4") +
                             row("4", "1", "", "4", "1"));
  REQUIRE(json["choices"].size() == 1);
  const Json& choice = json["choices"][0];
  CHECK(choice["name"] == "mine");
  CHECK(choice["groups"] == 1);
  CHECK(choice["plans"] == 2);
  CHECK(choice["tau"] == -1.0);
  CHECK(choice["regret"].get<double>() == Approx(0.25));
  CHECK(choice["regret_of_three"] == 0.0);
  CHECK(choice["best_in_five"] == 1.0);
  // A group that is given joins rows of other clusters.
  const Json joined =
      judged("mine.csv", head + row("8", "1", "a", "8", "0.5") + row("4", "1", "a", "4", "1"));
  CHECK(joined["choices"][0]["tau"] == 1.0);
  CHECK(joined["choices"][0]["plans"] == 2);
}

// All plans take 1.2 times as long as predicted. One step differs from its prediction by that much
// on its own often enough, so the step of the plan predicted best tells only a part of it. The other
// two are judged.
TEST_CASE("validate: the other plans are judged again with the step of the plan predicted best") {
  const auto with = [](const std::vector<double>& steps) {
    std::string rows =
        "case,workload.model,training.global_batch,training.microbatch,plan.data,cluster.device,"
        "cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n";
    for (std::size_t i = 0; i < steps.size(); ++i)
      rows += "mine,llama3_8b,256," + std::to_string(2 << i) + ",8,h100_sxm5_80,8,1,nvswitch," +
              std::to_string(steps[i]) + "\n";
    return judged("mine.csv", rows);
  };
  std::vector<double> slower;
  const Json alone = with({1, 1, 1});
  for (const Json& row : alone["rows"])
    slower.push_back(1.2 * row["predicted"]["value"].get<double>());
  const Json json = with(slower);
  REQUIRE(json["choices"].size() == 2);
  CHECK(number(json["choices"][0], "median_error") == Approx(1 - 1 / 1.2).epsilon(1e-3));
  const Json& given = json["choices"][1];
  CHECK(given["name"] == "mine, first step given");
  CHECK(given["plans"] == 2);
  CHECK(number(given, "median_error") < 0.9 * number(json["choices"][0], "median_error"));
  CHECK(with({1, 1})["choices"].size() == 1);  // no choice would remain
}

TEST_CASE("validate: unknown rows are skipped and counted, and never end the run") {
  const Json json = judged(
      "mixed.csv",
      "workload.model,workload.sequnce,colour,training.global_batch,plan.data,cluster.device,"
      "cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n"
      "gpt2,1024,red,8,8,h100_sxm5_80,8,1,nvswitch,0.5\n"
      "gpt2,1024,red,8,8,z9000,8,1,nvswitch,0.5\n"
      "gpt2,1024,red,8,8,z9000,8,1,nvswitch,0.5\n"
      "gpt2,1024,red,8,8,h100_sxm5_80,8,1,nvswitch,fast\n"
      "no_such_model,1024,red,8,8,h100_sxm5_80,8,1,nvswitch,0.5\n");
  CHECK(json["rows"].size() == 1);
  REQUIRE(json["skipped"].size() == 5);
  std::map<std::string, int> counts;
  for (const Json& each : json["skipped"])
    counts[each["what"].get<std::string>()] += each["count"].get<int>();
  CHECK(counts["row"] == 4);
  CHECK(counts["column"] == 2);  // colour, and the misspelt sequence
  CHECK(json["skipped"][0]["first"] == "mixed.csv:3");
  CHECK(json["skipped"][0]["count"] == 2);
  const test::Ran ran =
      test::rehearse({"validate", test::write_scratch("other.csv", "a,b\n1,2\n").string()});
  test::check_failed(ran, 1, "its columns match no schema of measurements; jobs: ");
}

TEST_CASE("validate: links to folders or to nothing are counted, and not followed") {
  const auto file = test::write_scratch(
      "nccl.csv", "device,op,ranks,size_bytes,time_us\nh100_sxm5_80,all_reduce,8,1048576,40\n");
  std::filesystem::create_symlink(".", file.parent_path() / "again");
  std::filesystem::create_symlink("nowhere", file.parent_path() / "lost");
  const Json json = test::json_of({"validate", "--quiet", file.parent_path().string()});
  CHECK(json["rows"].size() == 1);
  REQUIRE(json["skipped"].size() == 1);
  CHECK(json["skipped"][0]["count"] == 2);
}

TEST_CASE("validate: operations, collectives and pairs agree with the other commands") {
  const Json operations = judged("ops.csv",
                                 "device,kind,dtype,m,n,k,bytes,time_us\n"
                                 "NVIDIA H100 80GB HBM3,gemm,bf16,8192,8192,8192,,1700\n"
                                 "h100_sxm5_80,elementwise,bf16,,,,1e9,450\n"
                                 "h100_sxm5_80,gemm,bf16,8192,8192,,,1700\n");
  REQUIRE(operations["rows"].size() == 2);
  CHECK(std::abs(number(operations["rows"][0], "error")) < 0.3);
  CHECK(std::abs(number(operations["rows"][1], "error")) < 0.3);
  CHECK(operations["skipped"][0]["reason"] == "k: is empty; a number above zero");

  const Json collectives = judged(
      "nccl.csv", "device,op,ranks,size_bytes,time_us\nh100_sxm5_80,all_reduce,8,1048576,40\n");
  const Json point = test::json_of({"network", "--device", "h100_sxm5_80", "--op", "all_reduce",
                                    "--sizes", "1MiB"})["points"][0];
  CHECK(number(collectives["rows"][0]["predicted"], "value") ==
        Approx(number(point["time"], "value") * 1e6));

  const Json pairs = judged("pairs.csv",
                            "device,job,step_s,other_job,other_step_s,share\n"
                            "h100_sxm5_80,a,0.1,b,0.1,0.5\n");
  // No pair was measured there: time slicing, shares of alike jobs sum to 1.05.
  CHECK(number(pairs["rows"][0]["predicted"], "value") == Approx(0.525));
  CHECK(pairs["suites"][0]["interval_coverage"].is_null());
}

TEST_CASE("validate: peaks of memory are those of the allocator") {
  const std::string columns =
      "workload.model,training.global_batch,plan.data,plan.zero,cluster.device,"
      "cluster.devices_per_node,cluster.nodes,cluster.intra_node,";
  const std::string job = "gpt2,8,8,3,h100_sxm5_80,8,1,nvswitch,";
  const Json json = judged("m.csv", columns + "peak_gib,step_s\n" + job + "4,0.1\n");
  // A file that has both is judged by both.
  REQUIRE(json["suites"].size() == 2);
  CHECK(json["suites"][0]["name"] == "jobs/m");
  CHECK(json["suites"][1]["name"] == "memory/m");
  CHECK(json["rows"][1]["predicted"]["unit"] == "GiB");
  CHECK(json["skipped"].empty());
  // Rows with one of the two are of that kind alone.
  const Json apart = judged("m.csv", columns + "peak_gib,step_s\n" + job + ",0.1\n" + job + "4,\n");
  CHECK(apart["suites"][0]["rows"] == 1);
  CHECK(apart["suites"][1]["rows"] == 1);
  CHECK(apart["skipped"].empty());
  const std::string neither = columns + "peak_gib,step_s\n" + job + ",\n" + job + "4,0.1\n";
  CHECK(judged("m.csv", neither)["skipped"].size() == 2);
}

TEST_CASE("a baseline shows drifts, and does not fail on suites that were already bad") {
  const std::string file = test::write_scratch("nccl.csv",
                                               "case,device,op,ranks,size_bytes,time_us\n"
                                               "good,h100_sxm5_80,all_reduce,8,1073741824,4000\n"
                                               "bad,h100_sxm5_80,all_reduce,8,1073741824,40\n")
                               .string();
  Json before = test::json_of({"validate", file});
  REQUIRE(before["suites"].size() == 2);
  const auto against = [&](const Json& baseline) {
    return test::rehearse({"validate", file, "--baseline",
                           test::write_scratch("base.json", baseline.dump()).string()});
  };
  CHECK(against(before).code == 0);
  Json good = before;
  for (Json& suite : good["suites"]) {
    suite["median_error"] = 0.05;
    suite["interval_coverage"] = 1.0;
  }
  const test::Ran ran = against(good);
  CHECK(ran.code == 1);
  CHECK(ran.out.find("1 of 2 suites turned bad") != std::string::npos);
  test::check_failed(test::rehearse({"validate", file, "--baseline", "no_such.json"}), 1,
                     "no_such.json: cannot be read");
}

TEST_CASE(
    "validate: recordings of CPUs are replayed, and without devices their hosts take their time") {
  const test::Json json = test::json_of({"validate", "examples/cpu_ranks/rank0.json"});
  std::set<std::string> suites;
  for (const test::Json& suite : json["suites"]) suites.insert(suite["name"].get<std::string>());
  CHECK(suites.contains("replay"));
  CHECK(suites.contains("limits/host alone"));
}

}  // namespace
}  // namespace rehearse
