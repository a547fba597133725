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

TEST_CASE("names are taken as people write them, and saved as the catalog has them") {
  const fs::path saved = test::scratch_folder() / "saved.yaml";
  const Json job =
      simulated({"--model", "meta-llama/Llama-3-8B", "--gpus", "16", "--device", "H100-SXM5-80GB",
                 "--batch", "64", "--plan", "TP4,MB=2,Recompute=full", "--save", saved.string()});
  CHECK(job["step_time"] == simulated(kDescribed)["step_time"]);
  CHECK(test::text_of(saved).starts_with("workload: {model: \"llama3_8b\"}\n"));
  CHECK(test::text_of(saved).find("{device: \"h100_sxm5_80\",") != std::string::npos);
}

TEST_CASE("a job that cannot be read gives one error and no file") {
  const fs::path saved = test::scratch_folder() / "saved.yaml";
  const auto refused = [&](std::vector<std::string> arguments, const std::string& says) {
    arguments.insert(arguments.end(), {"--batch", "8", "--save", saved.string()});
    test::check_failed(test::rehearse(arguments), 1, says);
    CHECK_FALSE(fs::exists(saved));
  };
  const std::vector<std::string> on = {"--gpus", "8", "--device", "h100_sxm5_80"};
  for (const std::string command : {"simulate", "plan", "recommend"}) {
    INFO(command);
    std::vector<std::string> words = {command, "--sequence", "8192"};
    if (command == "recommend")
      words.insert(words.end(), {"--target", "1e9 tokens"});
    else
      words.insert(words.end(), on.begin(), on.end());
    std::vector<std::string> model = words, plan = words;
    model.insert(model.end(), {"--model", "NO_SUCH"});
    plan.insert(plan.end(), {"--model", "gpt2", "--plan", "zero=7"});
    refused(model, "--model: unknown model 'NO_SUCH'");
    refused(plan, "--plan zero: ");
  }
}

TEST_CASE("a plan in words has the keys of its mappings: servers are no data-parallel ranks") {
  const fs::path saved = test::scratch_folder() / "servers.yaml";
  const test::Ran ran = test::rehearse(
      {"simulate", "--model", "resnet50", "--gpus", "8", "--device", "v100_sxm2_16", "--batch",
       "192", "--plan", "mb=32,synchronization=parameter_server,servers=2,all_to_all=linear",
       "--fidelity", "closed", "--save", saved.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const std::string text = test::text_of(saved);
  INFO(text);
  CHECK(text.find("data: 6") != std::string::npos);
  CHECK(text.find("parameter_server: {servers: 2}") != std::string::npos);
  CHECK(text.find("collectives: {all_to_all: linear}") != std::string::npos);
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

// Before Ada, GPUs multiply FP8 operands in no unit, so that FP8 can save no time on them.
TEST_CASE("FP8 is only for devices that have it, and BF16 without units is told") {
  const auto on = [](const std::string& device, const std::string& dtype) {
    return test::rehearse({"simulate", "--model", "gpt2", "--gpus", "8", "--device", device,
                           "--batch", "8", "--plan", "dtype=" + dtype, "--fidelity", "closed",
                           "--format", "json"});
  };
  test::check_failed(on("a100_sxm4_80", "fp8"), 1,
                     "--plan dtype: a100_sxm4_80 has no matrix units for fp8; bf16");
  test::check_failed(on("v100_sxm2_32", "fp8"), 1, "no matrix units for fp8; fp16");
  CHECK(on("h100_sxm5_80", "fp8").code == 0);
  CHECK(test::document(on("v100_sxm2_32", "bf16"))["notes"].dump().find(
            "v100_sxm2_32 has no units for bf16") != std::string::npos);
  CHECK(test::document(on("a100_sxm4_80", "bf16"))["notes"].dump().find("units") ==
        std::string::npos);
  const Json rented = test::document(test::rehearse(
      {"recommend", "--model", "gpt2", "--batch", "64", "--target", "1e6 samples", "--plan",
       "dtype=fp8", "--provider", "aws", "--counts", "1", "--format", "json"}));
  for (const Json& option : rented["options"])
    CHECK(option["instance"].get<std::string>().find("p4d") == std::string::npos);
}

// The logits of a sample of 8,192 tokens are 1 G numbers: 17 GB as PyTorch's loss keeps them, and
// 2 GB if gradients replace them.
TEST_CASE("plan warns if its first plan fits only with the loss of other frameworks") {
  const auto warnings = [](std::vector<std::string> more) {
    const std::string file = test::write_scratch("loss.yaml", more[0]).string();
    const Json plan =
        test::document(test::rehearse({"plan", file, "--fidelity", "closed", "--format", "json"}));
    CHECK(plan["best"][0]["memory_per_device"]["fits"] == true);
    const Json alone = test::document(
        test::rehearse({"simulate", file, "--fidelity", "closed", "--format", "json"}));
    return std::pair(plan["best"][0]["warnings"].dump(),
                     alone["memory_per_device"]["fits"] == true);
  };
  const auto job = [](const std::string& loss) {
    return std::vector<std::string>{
        "workload: {model: llama3_8b" + loss +
        "}\ntraining: {global_batch: 256, microbatch: 1, recompute: none}\n"
        "plan: {data: 16, zero: 2, offload: none}\n"
        "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 2}\n"};
  };
  const auto [assumed, fits] = warnings(job(""));
  CHECK_FALSE(fits);
  CHECK(assumed.find("as `simulate` assumes without tensor parallelism") != std::string::npos);
  const auto [given, fits_given] = warnings(job(", loss: fused, fused_accumulation: true"));
  CHECK(fits_given);
  CHECK(given.find("as `simulate` assumes") == std::string::npos);
}

// Winograd's algorithm multiplies 2.25 to 4 times less often than the model counts.
TEST_CASE("a utilization above the peak has its reason") {
  const Json json = test::document(test::rehearse(
      {"simulate", "--model", "vgg16", "--gpus", "1", "--device", "v100_sxm2_32", "--batch", "64",
       "--plan", "mb=64,dtype=fp32", "--fidelity", "closed", "--format", "json"}));
  CHECK(test::value(json["mfu"]) > 1);
  CHECK(json["notes"].dump().find("MFU above 100 %") != std::string::npos);
}

TEST_CASE(
    "collectives over PCIe tell that few machines were measured, unless their rate is given") {
  const auto warned = [](const std::string& links) {
    const std::string file =
        test::write_scratch(
            "pcie.yaml",
            "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
            "plan: {data: 8}\ncluster: {device: l40s, devices_per_node: 8, nodes: 1" +
                links + "}\n")
            .string();
    return test::document(test::rehearse(
               {"simulate", file, "--fidelity", "closed", "--format", "json"}))["warnings"]
               .dump()
               .find("few machines") != std::string::npos;
  };
  CHECK(warned(""));
  CHECK_FALSE(warned(", intra_node: {kind: pcie, rate: 20 GB/s}"));
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
           Case{1, {"--gpus", "8", "--plan", "pp8,1f1b"}, "unknown key '1f1b'; schedule=1f1b"},
           Case{1, {"--gpus", "8", "--plan", "tp4xdp2"}, "'tp4xdp'; commas between keys"},
           Case{1, {"--gpus", "8", "--plan", "tp8,"}, "--plan: an empty key; such as tp8,pp4"},
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
