// Loads of a server by its job file, and results of benchmarks as measurements.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

std::string job_with(const std::string& load, const std::string& server = "framework: vllm") {
  return test::write_scratch(
             "serve.yaml",
             fmt::format("serve:\n  model: llama3_8b\n  {}\n  load: {{{}}}\n"
                         "cluster: {{device: h100_sxm5_80, devices_per_node: 8, nodes: 1}}\n",
                         server, load))
      .string();
}

Json simulated(const std::string& job) {
  return test::document(test::rehearse({"simulate", job, "--format", "json"}));
}

TEST_CASE("users who think load a server less") {
  const auto running = [](const std::string& think) {
    return simulated(job_with("closed: 8, requests: 80, input: 200, output: 50" + think))["running"]
        .get<double>();
  };
  CHECK(running("") > 6);
  CHECK(running(", think: 0 s") == running(""));
  CHECK(running(", think: {exponential: 5 s}") < 3);
}

TEST_CASE("a conversation finds its earlier turns in the prefix cache") {
  const auto reused = [](const std::string& load, const std::string& flags) {
    return test::value(simulated(job_with(load, "flags: " + flags))["cache"]["reused"]);
  };
  // Prompts of 200, 450 and 700 tokens: of the last two 249 and 499 tokens are known, in blocks of 16.
  const std::string drawn = "closed: 1, turns: 3, requests: 9, input: 200, output: 50";
  CHECK(reused(drawn, "{prefix_cache: true}") == Approx((240 + 496) / 1350.0));
  CHECK(reused(drawn, "{prefix_cache: false}") == 0);
  const std::string csv =
      test::write_scratch("turns.csv",
                          "arrival_s,input_tokens,output_tokens,session,think_s\n0,200,50,a,\n"
                          "0,90,1,b,\n0,450,50,a,1\n9,700,50,a,1\n")
          .string();
  CHECK(reused("trace: " + csv, "{prefix_cache: true}") == Approx((240 + 496) / 1440.0));
}

TEST_CASE("priorities and deadlines have measures") {
  // 60 requests at once for 4 rows: the first class goes first where the server knows of it.
  const std::string load =
      "rate: 100 per s, requests: 60, input: 200, output: 100, priorities: [0.3, 0.7], deadline: "
      "[2 s, 5 s]";
  const Json fcfs = simulated(job_with(load, "flags: {max_num_seqs: 4}")),
             ranked =
                 simulated(job_with(load, "flags: {max_num_seqs: 4, scheduling_policy: priority}")),
             dropped = simulated(job_with(load + ", drop: true", "flags: {max_num_seqs: 4}"));
  const auto ttft = [](const Json& json, std::size_t i) {
    return test::value(json["classes"][i]["ttft"]["mean"]);
  };
  REQUIRE(ranked["classes"].size() == 2);
  CHECK(ttft(ranked, 0) < 0.6 * ttft(ranked, 1));
  CHECK(ttft(fcfs, 0) > 0.7 * ttft(fcfs, 1));
  CHECK(test::value(ranked["classes"][0]["deadlines_met"]) >
        test::value(fcfs["classes"][0]["deadlines_met"]));
  CHECK(test::value(fcfs["deadlines_met"]) < 1);
  CHECK(fcfs["dropped"] == 0);
  CHECK(dropped["dropped"] > 0);
  CHECK(test::value(dropped["deadlines_met"]) > test::value(fcfs["deadlines_met"]));
  CHECK(test::value(fcfs["goodput"]) < test::value(fcfs["throughput"]["requests_per_s"]));
  CHECK(test::rehearse({"simulate", job_with(load)}).out.find("Priorities change no step") !=
        std::string::npos);
}

TEST_CASE("wrong loads get one line") {
  const std::string lengths = ", input: 100, output: 10";
  const std::string trace =
      test::write_scratch("short.csv",
                          "arrival_s,input_tokens,output_tokens,session\n0,200,50,a\n1,240,5,a\n")
          .string();
  const std::string pairs =
      test::write_scratch("pairs.csv", "arrival_s,input_tokens,output_tokens\n0,200,50\n").string();
  for (const auto& [load, says] : std::vector<std::pair<std::string, std::string>>{
           {"rate: 1, think: 2 s" + lengths, "load.think: has no turn to wait for"},
           {"closed: 2, turns: 0" + lengths, "load.turns"},
           {"closed: 2, think: {}" + lengths, "exponential"},
           {"closed: 2, priorities: [0.5, 0.6]" + lengths, "priorities: are no shares"},
           {"closed: 2, priorities: [0.5, 0.5], deadline: [1 s, 2 s, 3 s]" + lengths,
            "3 deadlines for 2 priorities"},
           {"closed: 2, drop: true" + lengths, "drop: has no deadline"},
           {"closed: 2, deadline: 1 ms, drop: true" + lengths, "leave at their deadlines"},
           {"rate: 1, bursts: {length: 5 s}" + lengths, "pause: is missing"},
           {"rate: 1, bursts: {length: 0 s, pause: 5 s, quiet: 0.3}" + lengths,
            "length: is out of"},
           {"rate: 1, bursts: {length: 5 s, pause: 5 s, quiet: 2}" + lengths, "quiet"},
           {"closed: 2, output: 5, input: {median: 300, sigma: 1}", "most: is missing"},
           {"closed: 2, output: 5, lengths: " + pairs, "output: is given by `lengths`"},
           {"trace: " + trace, "a prompt of 240 tokens in a session that has 250"}})
    test::check_failed(test::rehearse({"simulate", job_with(load)}), 1, says);
  test::check_failed(
      test::rehearse({"simulate", job_with("closed: 2" + lengths,
                                           "framework: sglang\n  flags: {scheduling_policy: "
                                           "priority}")}),
      1, "is a flag of vllm");
}

TEST_CASE("validate: results of the benchmarks of vLLM and SGLang") {
  const std::string columns =
      "name,serve.model,serve.framework,serve.version,cluster.device,result\n";
  const auto table =
      test::write_scratch("runs.csv", columns +
                                          "a,llama3_8b,vllm,0.11,h100_sxm5_80,vllm.json\n"
                                          "b,llama3_8b,sglang,,h100_sxm5_80,sglang.jsonl:1\n"
                                          "c,llama3_8b,sglang,,h100_sxm5_80,sglang.jsonl\n"
                                          "d,llama3_8b,vllm,0.11,h100_sxm5_80,failed.json\n");
  for (const char* name : {"vllm.json", "sglang.jsonl", "failed.json"})
    test::write_file(
        table.parent_path() / name,
        test::text_of(test::source_file(fmt::format("tests/fuzz/corpus/serving_result/{}", name))));
  const test::Ran ran = test::rehearse({"validate", table.string(), "--format", "json"});
  CHECK(ran.errors.find("has 2 results") != std::string::npos);
  const Json json = Json::parse(ran.out);
  REQUIRE(json["rows"].size() == 6);  // three measures of two runs
  const Json vllm = simulated(
      job_with("closed: 32, requests: 320, input: 512, output: 128", "version: \"0.11\""));
  for (const Json& row : json["rows"]) {
    if (row["name"] != "a") continue;
    if (row["suite"] == "ttft/runs") {
      CHECK(test::value(row["measured"]) == Approx(0.2104));
      CHECK(row["predicted"]["value"].get<double>() == Approx(test::value(vllm["ttft"]["mean"])));
    }
    if (row["suite"] == "tpot/runs") CHECK(test::value(row["measured"]) == Approx(0.0459));
  }
  // SGLang's random lengths are uniform.
  const Json sglang = simulated(
      job_with("closed: 16, requests: 160, input: {uniform: [512, 1024]}, output: {uniform: [64, "
               "128]}",
               "framework: sglang"));
  for (const Json& row : json["rows"])
    if (row["name"] == "b" && row["suite"] == "tpot/runs")
      CHECK(row["predicted"]["value"].get<double>() == Approx(test::value(sglang["tpot"]["mean"])));
  const auto failed = test::write_scratch(
      "failed.csv", columns + "d,llama3_8b,vllm,0.11,h100_sxm5_80,failed.json\n");
  test::write_file(failed.parent_path() / "failed.json",
                   "{\"num_prompts\": 10, \"completed\": 7, \"request_rate\": 1.0}");
  test::check_failed(test::rehearse({"validate", failed.string()}), 1, "7 of 10 requests ended");
}

}  // namespace
}  // namespace rehearse
