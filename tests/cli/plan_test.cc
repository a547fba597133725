// plan: the contract, what a job file keeps, launch configurations, and what is refused.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/engine/simgrid.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;
using test::value;

constexpr char kPlanned[] = R"(workload: {model: gpt2_medium}
training: {global_batch: 32}
plan: {context: 1, offload: none}
cluster: {device: a100_sxm4_40, devices_per_node: 4, intra_node: nvswitch}
)";

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Ran plan(const std::string& text, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"plan", test::write_scratch("job.yaml", text).string()});
  return test::rehearse(more);
}

Json plan_json(const std::string& text, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--format", "json", "--fidelity", "closed"});
  return test::document(plan(text, more));
}

}  // namespace

TEST_CASE("plan: plans seen, the best with the times of simulate, the front") {
  const Json json = plan_json(kPlanned);
  CHECK(json["schema"] == "rehearse/1");
  CHECK(json["command"] == "plan");
  CHECK(json["candidates_seen"].get<int>() > 100);
  CHECK(json["candidates_per_s"].get<double>() > 0);
  CHECK(json["candidates_evaluated"] <= json["candidates_seen"]);
  REQUIRE(json["best"].size() == 10);
  double before = 0, chance = 0;
  for (const Json& best : json["best"]) {
    for (const char* key :
         {"plan.data", "step_time.value", "throughput.value", "mfu.value",
          "memory_per_device.value", "breakdown.bubble.value", "energy_per_step.value"})
      test::check_has(best, key);
    CHECK(best["memory_per_device"]["fits"] == true);
    if (best != json["best"].front()) {  // within the noise of the others
      CHECK(value(best["step_time"]) >= before);
      before = value(best["step_time"]);
    }
    CHECK(best["plan"]["context"] == 1);
    CHECK(best["plan"]["offload"] == "none");
    chance += best["chance"].get<double>();
  }
  CHECK(chance == Approx(1));
  REQUIRE(json["pareto"].size() > 1);
  CHECK(json["pareto"][0]["step_time"]["unit"] == "s");
  CHECK(json["pareto"][0]["memory"]["unit"] == "B");
  CHECK(json["pareto"][0]["cost"].is_null());  // nothing is rented
}

TEST_CASE("a found plan takes the same time under simulate") {
  // What a search assumes of the model is said here, so that one plan assumes it too.
  const std::string job = with(kPlanned, "model: gpt2_medium",
                               "model: gpt2_medium, loss: fused, fused_accumulation: true");
  const Json best = plan_json(job)["best"][0];
  const Json& p = best["plan"];
  const std::string one =
      with(with(job, "global_batch: 32",
                fmt::format("global_batch: 32, microbatch: {}, recompute: {}",
                            p["microbatch"].get<double>(), p["recompute"].get<std::string>())),
           "context: 1, offload: none",
           fmt::format(
               "data: {}, tensor: {}, pipeline: {}, interleave: {}, schedule: {}, zero: {}, "
               "sequence_parallel: {}, placement: {}",
               p["data"].get<int>(), p["tensor"].get<int>(), p["pipeline"].get<int>(),
               p["interleave"].get<int>(), p["schedule"].get<std::string>(), p["zero"].get<int>(),
               p["sequence_parallel"].get<bool>(), p["placement"].get<std::string>()));
  const Json simulated = test::json_of(
      {"simulate", test::write_scratch("one.yaml", one).string(), "--fidelity", "closed"});
  for (const char* key : {"step_time", "memory_per_device", "mfu", "breakdown", "plan"})
    CHECK(simulated[key] == best[key]);
}

TEST_CASE("plan keys of a job file are kept") {
  const Json json = plan_json(with(kPlanned, "context: 1", "context: 1, tensor: 2, zero: 1"));
  for (const Json& best : json["best"]) {
    CHECK(best["plan"]["tensor"] == 2);
    CHECK((best["plan"]["zero"] == 1 || best["plan"]["data"] == 1));
  }
  const Json batch =
      plan_json(with(kPlanned, "global_batch: 32", "global_batch: 32, microbatch: 2"));
  for (const Json& best : batch["best"]) CHECK(best["plan"]["microbatch"] == 2);
  const Ran text = plan(with(kPlanned, "context: 1", "context: 1, tensor: 2"));
  CHECK(text.code == 0);
  CHECK(text.out.find("\nkept as given  ") != std::string::npos);
  CHECK(text.out.find("  tensor 2, context 1, offload none\n") != std::string::npos);
}

TEST_CASE("the same seed and any number of threads give the same plans") {
  Json one = plan_json(kPlanned, {"--threads", "1"}),
       three = plan_json(kPlanned, {"--threads", "3"});
  for (const char* rate : {"candidates_per_s", "evaluated_per_s"}) {
    one.erase(rate);
    three.erase(rate);
  }
  CHECK(one == three);
}

TEST_CASE("the seed affects only the draws") {
  Json one = plan_json(kPlanned), two = plan_json(kPlanned, {"--seed", "2"});
  REQUIRE(one["best"].size() == two["best"].size());
  bool differs = false;
  for (std::size_t i = 0; i < one["best"].size(); ++i) {
    CHECK(one["best"][i]["plan"] == two["best"][i]["plan"]);
    CHECK(one["best"][i]["step_time"] == two["best"][i]["step_time"]);
    differs |= one["best"][i]["chance"] != two["best"][i]["chance"];
  }
  CHECK(differs);
}

TEST_CASE("the best plans are shown by every model, and confirmed by SimGrid if it is available") {
  const std::string job = with(kPlanned, "context: 1", "context: 1, tensor: 2, pipeline: 1");
  const Json json = test::document(plan(job, {"--format", "json"}));
  CHECK(json["fidelity"] == "message");
  const bool there = engine::simgrid_available();
  CHECK(json["simgrid"]["confirmed"] == (there ? json["best"].size() : 0));
  CHECK(json["simgrid"]["left_out"].is_null() == there);
  double contention = 0;
  CHECK(json["all_ranks"].get<std::size_t>() >= json["best"].size());
  for (const Json& best : json["best"]) {
    const Json& models = best["models"];
    CHECK(value(models["all_ranks"]) == value(best["step_time"]));
    CHECK(value(models["closed"]) > 0);
    CHECK(value(models["all_ranks"]) / value(models["message"]) - 1 ==
          Approx(models["contention"].get<double>()).margin(1e-12));
    contention = std::max(contention, models["contention"].get<double>());
    CHECK(best["chance_if_common"].get<double>() <= 1);
    if (!there) continue;
    CHECK(value(models["without_slowing"]) <= value(models["all_ranks"]));
    CHECK(value(models["simgrid"]) == Approx(value(models["without_slowing"])).epsilon(1e-8));
    CHECK(std::abs(models["difference"].get<double>()) < 1e-8);
  }
  CHECK(contention > 1e-4);  // sums of gradients concurrent with those of tensor parallelism
  const std::string text = plan(job).out;
  CHECK(text.find("Step time by each model\n") != std::string::npos);
  CHECK(text.find("ran with all ranks, so that concurrent collectives contend for links") !=
        std::string::npos);
  CHECK(text.find("assumes that all plans share 80 % of the model's error; with 100 % shared it "
                  "is ") != std::string::npos);
  // Closed forms alone: nothing is run, nothing is said of it.
  const Json closed = plan_json(job);
  CHECK(closed["simgrid"].is_null());
  CHECK(plan(job, {"--fidelity", "closed"}).out.find("Step time by each model") ==
        std::string::npos);
}

TEST_CASE("plan draws the timeline of the best") {
  const std::filesystem::path trace = test::write_scratch("trace.json", "");
  const Ran ran = plan(kPlanned, {"--fidelity", "closed", "--perfetto", trace.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json drawn = Json::parse(test::text_of(trace));
  CHECK(drawn["traceEvents"].size() > 100);
  test::check_failed(plan(kPlanned, {"--perfetto", "/nowhere/trace.json"}), 1, "/nowhere");
}

TEST_CASE("plan searches with the job's input pipeline") {
  const std::filesystem::path pipeline = test::write_scratch(
      "pipeline.yaml", "stages:\n  - {name: tokenize, workers: 4, time: 100 ms}\n");
  const std::string job = fmt::format("{}input: {}\n", kPlanned, pipeline.string());
  // 32 samples on one node, four at a time: 0.8 s.
  const Json json = plan_json(job);
  const Json& best = json["best"][0];
  CHECK(value(best["step_time"]) >= 0.8 * (1 - 1e-4));
  CHECK(value(best["breakdown"]["input"]) > 0.3);
  CHECK(json["notes"].dump().find("bounded by threads of tokenize: 40") != std::string::npos);
  const Ran text = plan(job, {"--fidelity", "closed"});
  CHECK(text.out.find("samples as soon as the pipeline can") != std::string::npos);
  const double alone = value(plan_json(kPlanned)["best"][0]["step_time"]);
  CHECK(value(best["step_time"]) - value(best["breakdown"]["input"]) <= alone * 1.05);
}

TEST_CASE("a recording is laid out anew, in as many samples as were recorded") {
  const std::string job = fmt::format(
      "workload: {{recording: {}}}\ntraining: {{global_batch: 64}}\n"
      "cluster: {{device: h100_sxm5_80, devices_per_node: 4, intra_node: nvswitch}}\n",
      test::source_file("examples/recordings/two_linears.json").string());
  const Json json = plan_json(job);
  REQUIRE(!json["best"].empty());
  CHECK(json["best"][0]["job"]["ranks"] == 4);
}

TEST_CASE("Offers on which the plan can be laid out are found") {
  // A plan with stages of its own wants eight devices, which other instances have not.
  const Ran ran = test::rehearse({"recommend", "examples/jobs/gpt2_xl_mixed.yaml", "--target",
                                  "1e9 tokens", "--provider", "aws", "--counts", "1"});
  INFO(ran.errors);
  CHECK(ran.code == 0);
  CHECK(ran.out.find("1 × p4d.24xlarge") != std::string::npos);
  CHECK(ran.out.find("p3.2xlarge") == std::string::npos);
}

TEST_CASE("plan writes launch configurations") {
  const Ran megatron = plan(kPlanned, {"--emit", "megatron"});
  REQUIRE(megatron.code == 0);
  CHECK(megatron.out.starts_with("#!/bin/bash\n"));
  CHECK(megatron.out.find("pretrain_gpt.py") != std::string::npos);
  CHECK(megatron.out.find("--hidden-size 1024\n") != std::string::npos);
  const Ran deepspeed = plan(kPlanned, {"--emit", "deepspeed"});
  REQUIRE(deepspeed.code == 0);
  const Json json = Json::parse(deepspeed.out);
  CHECK(json["train_batch_size"] == 32);
  CHECK(json["train_micro_batch_size_per_gpu"].get<int>() *
            json["gradient_accumulation_steps"].get<int>() * 4 ==
        32);
  CHECK(plan(kPlanned, {"--emit", "torchtitan"}).out.find("[parallelism]\n") != std::string::npos);
  const std::filesystem::path file = test::write_scratch("launch.sh", "");
  const std::filesystem::path page = file.parent_path() / "plans.html";
  REQUIRE(
      plan(kPlanned, {"--emit", "megatron", "-o", file.string(), "--report", page.string()}).code ==
      0);
  CHECK(test::text_of(file).starts_with("#!/bin/bash\n"));
  CHECK(std::filesystem::exists(page));
  test::check_failed(plan(with(kPlanned, "offload: none", "pipeline: 2"), {"--emit", "deepspeed"}),
                     1, "DeepSpeed's JSON has no key for pipeline 2");
}

TEST_CASE("plan refuses unsatisfiable limits in one line") {
  const auto refused = [](const std::string& text, const std::vector<std::string>& more,
                          const std::string& line) {
    test::check_failed(plan(text, more), 1, line);
  };
  refused(with(kPlanned, "gpt2_medium", "llama_33b"), {}, "no plan fits: the nearest (");
  refused(kPlanned, {"--within", "step_time=1 ms"}, "no plan has a step_time of at most 1.000 ms");
  refused(kPlanned, {"--objective", "cost"}, "the cost of a step is unknown here");
  for (const auto& [limit, says] :
       {std::pair("memory=3", "--within: 'memory=3': '3' has no unit"),
        std::pair("memory=-3 GiB", "--within: 'memory=-3 GiB': not above zero"),
        std::pair("memory", "--within: 'memory': the limit is missing"),
        std::pair("speed=3 s", "unknown quantity 'speed'"),
        std::pair("carbon=3 kg", "unknown unit 'kg' of an amount of carbon")})
    test::check_failed(plan(kPlanned, {"--within", limit}), 2, says);
  refused(with(kPlanned, "context: 1", "tensor: 3"), {},
          "plan.tensor: no plan of 4 ranks divides this job: tensor 3 does not divide 4 ranks; "
          "nearest: tensor 4");
  test::check_failed(plan(kPlanned, {"--objective", "speed"}), 2, "unknown name 'speed'");
  test::check_failed(plan(kPlanned, {"--emit", "megatron-lm"}), 2, "unknown name 'megatron-lm'");
}

}  // namespace rehearse
