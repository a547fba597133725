// --model and its options describe the job that a file would.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

const std::vector<std::string> kDescribed = {
    "--model",      "llama3_8b", "--gpus", "16",     "--device",
    "h100_sxm5_80", "--batch",   "64",     "--plan", "tp4,mb=2,recompute=full"};

Json simulated(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  arguments.insert(arguments.end(), {"--fidelity", "closed", "--format", "json"});
  return test::document(test::rehearse(arguments));
}

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), kDescribed.begin(), kDescribed.end());
  return more;
}

}  // namespace

TEST_CASE("a described job is the job of the file that --save writes") {
  const std::string saved = test::write_scratch("saved.yaml", "").string();
  const Json described = simulated(with({"--save", saved}));
  CHECK(test::text_of(saved) ==
        "workload: {model: \"llama3_8b\"}\n"
        "training: {global_batch: 64, microbatch: 2, recompute: full}\n"
        "plan: {data: 4, tensor: 4}\n"
        "cluster: {device: \"h100_sxm5_80\", devices_per_node: 8, nodes: 2}\n");
  CHECK(described["step_time"] == simulated({saved})["step_time"]);
  CHECK(described["step_time"] == simulated(kDescribed)["step_time"]);
}

TEST_CASE("a described job runs on instances, and is searched") {
  const Json json = test::document(test::rehearse(
      {"plan", "--model", "gpt2_medium", "--gpus", "8", "--device", "p4d.24xlarge", "--batch", "32",
       "--plan", "tp2", "--fidelity", "closed", "--format", "json"}));
  for (const Json& best : json["best"]) CHECK(best["plan"]["tensor"] == 2);
  CHECK(test::value(json["best"][0]["cost_per_step"]) > 0);
}

// 8 B parameters with Adam take 128 GB, more than a GPU has; frozen, they take 16 GB.
TEST_CASE("adapters are an option of a job's training, and plans are searched with them") {
  const auto plan = [](const std::string& rank) {
    return test::rehearse({"plan", "--model", "llama3_8b", "--gpus", "1", "--device",
                           "h100_sxm5_80", "--batch", "8", "--plan",
                           "recompute=none,lora_rank=" + rank, "--fidelity", "closed", "--quiet",
                           "--format", "json"});
  };
  test::check_failed(plan("0"), 1, "no plan fits");
  const Json found = test::document(plan("16"));
  CHECK(found["best"][0]["plan"]["lora_rank"] == 16);
  CHECK(found["best"][0]["plan"]["offload"] == "none");

  // One matrix of queries, keys and values: 32 blocks · 16 · (4096 + 6144 + 8192).
  const Json job = simulated({"--model", "llama3_8b", "--gpus", "8", "--device", "h100_sxm5_80",
                              "--batch", "64", "--plan", "lora_rank=16"});
  CHECK(job["job"]["trained_parameters"] == 9'437'184);
  CHECK(test::value(job["memory_per_device"]["parts"]["gradients"]) == Approx(4. * 9'437'184));

  const std::string wrong =
      test::write_scratch("job.yaml",
                          "workload: {model: resnet50}\ntraining:\n  global_batch: 8\n"
                          "  lora_rank: 4\ncluster: {instance: p4d.24xlarge, count: 1}\n")
          .string();
  test::check_failed(test::rehearse({"simulate", wrong}), 1,
                     ":4:14: training.lora_rank: a model without attention");
}

TEST_CASE("wrong descriptions of a job") {
  struct Case {
    int code;
    std::vector<std::string> more;
    const char* says;
  };
  for (const Case& c : {
           Case{1,
                {"--gpus", "6", "--plan", "tp4"},
                "multiply to 4, which does not divide 6 GPUs; 8 GPUs, or other degrees"},
           Case{1, {"--gpus", "12"}, "no multiple of a node's 8; --gpus 8 or 16"},
           Case{1, {"--gpus", "8", "--plan", "tq4"}, "unknown key 'tq'"},
           Case{1, {"--gpus", "8", "--plan", "tp"}, "'tp' has no valid value; a whole number"},
           Case{1, {"--gpus", "8", "--plan", "tp2,tensor=2"}, "'tensor' is given twice"},
           Case{1, {"--gpus", "8", "--plan", "schedule={a: b}"}, "has no valid value"},
           Case{1, {"--gpus", "8", "--plan", "zero=9"}, "--plan zero: "},
           Case{2, {}, "--model needs --gpus N and --device NAME"},
           Case{2, {"--gpus", "8", "--chakra", "x"}, "a job or --chakra, not both"},
       }) {
    std::vector<std::string> arguments = {"simulate", "--model",  "gpt2",        "--batch",
                                          "8",        "--device", "a100_sxm4_80"};
    arguments.insert(arguments.end(), c.more.begin(), c.more.end());
    INFO(c.says);
    test::check_failed(test::rehearse(arguments), c.code, c.says);
  }
  test::check_failed(test::rehearse({"plan", "--batch", "8"}), 2, "need --model");
  test::check_failed(test::rehearse({"recommend"}), 2, "a job file, or --model NAME");
  test::check_failed(test::rehearse({"recommend", "--model", "gpt2"}), 2,
                     "--model needs --batch N");
}

}  // namespace rehearse
