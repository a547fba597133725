// simulate on job files: formats, recordings, and what is refused.
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/one_node_job.h"

namespace rehearse::one_node {
namespace {

/// Of the contract (the command-line page), with no more nulls than what a bare device lacks.
void check_contract(const Json& json) {
  for (const char* key :
       {"schema", "command", "step_time.value", "throughput.value", "mfu.value", "hfu.value",
        "memory_per_device.value", "memory_per_device.fits",
        "memory_per_device.parts.weights.value", "breakdown.compute.value",
        "breakdown.exposed_communication.value", "breakdown.bubble.value", "breakdown.input.value",
        "breakdown.launch.value", "breakdown.idle.value", "energy_per_step.value"})
    test::check_has(json, key);
  for (const char* key : {"cost_per_step", "carbon_per_step", "warnings"})
    CHECK(json.contains(key));
  CHECK(json["step_time"]["unit"] == "s");
  CHECK(json["memory_per_device"]["unit"] == "B");
  CHECK(json["energy_per_step"]["unit"] == "J");
  double sum = 0;
  for (const auto& [name, part] : json["breakdown"].items()) {
    CHECK(part["low"] <= part["value"]);
    CHECK(part["value"] <= part["high"]);
    if (name != "total") sum += value(part);
  }
  CHECK(sum == Approx(value(json["step_time"])).epsilon(1e-6));
  for (const char* end : {"low", "value", "high"})
    CHECK(json["breakdown"]["total"][end].get<double>() ==
          Approx(json["step_time"][end].get<double>()).epsilon(1e-12));
  for (const char* key : {"step_time", "throughput", "mfu", "hfu", "memory_per_device"}) {
    INFO(key);
    CHECK(json[key]["low"] < json[key]["value"]);
    CHECK(json[key]["value"] < json[key]["high"]);
  }
}

TEST_CASE("simulate a job file: in each format, and closed near message by message") {
  const Json message = step_json(job());
  check_contract(message);
  test::check_has(message, "tokens_per_s.value");
  CHECK(message["job"]["ranks"] == 8);
  CHECK(message["fidelity"] == "message");
  CHECK(value(message["tokens_per_s"]) == Approx(1024 * value(message["throughput"])));
  const Json closed = step_json(job(), {"--fidelity", "closed"});
  check_contract(closed);
  CHECK(value(closed["step_time"]) == Approx(value(message["step_time"])).epsilon(0.05));

  const Ran table = simulate(job());
  CHECK(table.code == 0);
  for (const char* text :
       {"step time    ", "throughput   ", "MFU          ", "peak memory  ",
        "Rank occupancy per step", "What would help most", "data-parallel communication free"})
    CHECK(table.out.find(text) != std::string::npos);
  const Ran csv = simulate(job("", "data: 2, pipeline: 4"), {"--format", "csv"});
  CHECK(
      csv.out.starts_with("stage,ranks,layers,parameters (M),peak memory (GiB),"
                          "peak memory low (GiB),peak memory high (GiB),device,fits\n"));
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 5);
}

TEST_CASE("simulate a job file on instances: money and carbon") {
  const Json json = step_json(
      "workload: {model: gpt2_medium}\ntraining: {global_batch: 64, microbatch: 2}\n"
      "plan: {data: 8}\ncluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n");
  check_contract(json);
  test::check_values(json);
  CHECK(json["cost_per_step"]["unit"] == "USD");
  CHECK(json["carbon_per_step"]["unit"] == "gCO2e");
}

TEST_CASE("the documented example job runs unchanged") {
  const Json json = step_json(R"(workload:
  model: gpt
  hidden: 12288
  layers: 96
  heads: 96
  sequence: 2048
  vocabulary: 51200
training:
  global_batch: 1536
  microbatch: 1
  dtype: bf16
  optimizer: adam
  recompute: full
plan:
  data: 16
  tensor: 8
  pipeline: 12
  context: 1
  expert: 1
  interleave: 1
  schedule: 1f1b
  zero: 0
  sequence_parallel: false
  synchronization: all_reduce
cluster:
  device: a100_sxm4_80
  devices_per_node: 8
  nodes: 192
  intra_node: nvswitch
  inter_node: {links: 8, rate: 200 Gbit/s, latency: 5 us}
target: {tokens: 300e9}
)");
  check_contract(json);
  const double steps = 300e9 / 2048 / 1536;
  CHECK(json["to_target"]["steps"].get<double>() == Approx(steps));
  CHECK(value(json["to_target"]["time"]) == Approx(value(json["step_time"]) * steps));
  CHECK(value(json["to_target"]["energy"]) == Approx(value(json["energy_per_step"]) * steps));
  CHECK(json["to_target"]["cost"].is_null());  // a bare device has no price
  CHECK(json["job"]["ranks"] == 1536);
  CHECK(json["job"]["parameters"].get<double>() == Approx(175e9).epsilon(0.01));
  CHECK(value(json["mfu"]) > 0.35);  // published: 0.44 to 0.52 of the peak
  CHECK(value(json["mfu"]) < 0.6);
}

// 1.5 and 1.15 times the kernels alone, which a scale of the file replaces. Communication slows none.
TEST_CASE("simulate a job file: mixtures take longer than their kernels") {
  const auto compute = [](const std::string& model, const std::string& more) {
    const Json json = step_json(job("", "data: 8, expert: 8", model) + more);
    CHECK(json["warnings"].dump().find("mixture of experts") != std::string::npos);
    return value(json["breakdown"]["compute"]);
  };
  const std::string mixtral = "model: mixtral_8x7b", free = "sustained: {overlap_penalty: 0}\n";
  const double kernels = compute(mixtral, "sustained: {overlap_penalty: 0, scale: 1}\n");
  CHECK(compute(mixtral, free) == Approx(1.5 * kernels));
  CHECK(compute(mixtral + ", fused_experts: true", free) == Approx(1.15 * kernels));
}

TEST_CASE("simulate a job file: time and cost to its target") {
  const Ran steps = simulate(job() + "target: {steps: 1000}\n");
  CHECK(steps.out.find("steps to target   1,000\n") != std::string::npos);
  const Json json = step_json(
      "workload: {model: resnet50}\ntraining: {global_batch: 256, microbatch: 32}\n"
      "plan: {data: 8}\ncluster: {instance: p4d.24xlarge, count: 1}\n"
      "target: {epochs: 90, samples_per_epoch: 1281133.33}\n");
  CHECK(json["to_target"]["steps"].get<double>() == Approx(115302e3 / 256));
  CHECK(value(json["to_target"]["cost"]) == Approx(value(json["cost_per_step"]) * 115302e3 / 256));
  CHECK_FALSE(step_json(job()).contains("to_target"));
}

TEST_CASE("simulate a job file: a timeline for Perfetto") {
  const auto path = test::scratch_folder() / "job.json";
  const Ran ran = simulate(job("", "data: 4, pipeline: 2"), {"--perfetto", path.string()});
  REQUIRE(ran.code == 0);
  const Json json = Json::parse(test::text_of(path));
  CHECK(json["traceEvents"].size() > 100);
}

TEST_CASE("simulate a job file that does not fit: a warning, and changes that would help") {
  const std::string text = job("", "data: 8", "model: gpt3_13b");
  const Ran ran = simulate(text);
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("does not fit") != std::string::npos);
  const auto at = ran.out.find("What would make it fit");
  REQUIRE(at != std::string::npos);
  CHECK(ran.out.find("ZeRO-3: ", at) != std::string::npos);
  const Json json = step_json(text);
  CHECK(json["memory_per_device"]["fits"] == false);
  CHECK(json["warnings"].size() == 1);
  CHECK(json["remedies"].size() >= 4);
  // The most effective comes first.
  CHECK(json["remedies"][0].get<std::string>().find("; fits") != std::string::npos);
  CHECK(step_json(job())["remedies"].empty());
}

TEST_CASE("simulate a job file: mistakes, one line each") {
  refused(job("", "data: 1, tensor: 3"),
          "job.yaml:3:25: tensor 3 does not divide 16 heads; nearest: tensor 2 or 4\n");
  refused(job("", "pipeline: 26"),
          "job.yaml:3:18: pipeline 26 for 24 layers; at least one layer per stage; nearest: "
          "pipeline 24\n");
  refused(job(", frozen_weights: nf4"), "job.yaml:2:61: frozen_weights nf4 needs lora_rank");
  refused(job("", "data: 64"),
          "job.yaml:2:11: training: global_batch 64 is not a multiple of data 64 x microbatch 2; "
          "nearest: data 32\n");
  refused(replaced(job(), "global_batch: 64", "global_batch: 8e8"),
          "job.yaml:2:11: training: global_batch 800000000 makes 50000000 microbatches per "
          "data-parallel rank; at most 65,536; a smaller global_batch, a larger microbatch or a "
          "larger data degree\n");
  refused(job("", "data: 16"),
          "job.yaml: the plan needs 16 ranks, but the cluster has 8 devices; data × tensor × "
          "pipeline × context of at most the devices\n");
  refused(job("", "data: 8", "model: gpt2_medum"),
          "job.yaml:1:19: workload.model: unknown model 'gpt2_medum'; did you mean "
          "'gpt2_medium'?\n");
  refused(job(", microbach: 2"),
          "job.yaml:2:45: training.microbach: unknown key; did you mean 'microbatch'?\n");
  refused(job() + "target: {epochs: 90}\n", "samples_per_epoch");
  refused(job("", "data: 8", "model: resnet50") + "target: {tokens: 1e9}\n",
          "job.yaml:8:18: target.tokens: samples of this workload have no tokens; samples or "
          "steps\n");
  refused(job("", "data: 8, zero: 4"),
          "job.yaml:3:23: plan.zero: 4 is out of range; a whole number from 0 to 3\n");
}

// --- Recordings ---------------------------------------------------------------------------------

/// Two linears, recorded on one device: 8 samples in 1 ms; layers take 700 us of it.
std::string recorded(
    const std::string& training, const std::string& plan = "data: 1", const std::string& more = "",
    const std::string& path = test::source_file("examples/recordings/two_linears.json").string()) {
  return fmt::format(
      "workload: {{recording: {}{}}}\ntraining: {{{}}}\nplan: {{{}}}\n"
      "cluster: {{device: v100_sxm2_32, devices_per_node: 2, nodes: 1, intra_node: nvlink}}\n",
      path, more, training, plan);
}

TEST_CASE("a recording on one rank at its batch takes the recorded step") {
  const Json json = step_json(recorded("global_batch: 8"));
  check_contract(json);
  CHECK(value(json["step_time"]) == Approx(1e-3).epsilon(1e-6));
  CHECK(json["step_time"]["provenance"] == "recorded");
  CHECK(value(json["breakdown"]["compute"]) == Approx(700e-6).epsilon(1e-6));
  CHECK(value(json["breakdown"]["launch"]) == Approx(300e-6).epsilon(1e-6));
  CHECK(value(json["compute_parts"]["optimizer"]) == Approx(45e-6).epsilon(1e-6));
  CHECK(json["plan"]["microbatch"] == 8);
  CHECK(json["conditions"]["source"] == "recorded: two_linears.json");
  CHECK(json["compute_from"]["recorded"] == 1.0);
  // Twice as many passes: twice all but the optimizer.
  const Json twice = step_json(recorded("global_batch: 16"));
  CHECK(value(twice["breakdown"]["compute"]) == Approx((2 * 655 + 45) * 1e-6).epsilon(1e-6));
}

TEST_CASE("a recording laid out over ranks and batches") {
  const Json data = step_json(recorded("global_batch: 16", "data: 2"));
  check_contract(data);
  CHECK(value(data["breakdown"]["compute"]) == Approx(700e-6).epsilon(1e-6));
  CHECK(value(data["breakdown"]["exposed_communication"]) > 0);
  const Json batch = step_json(recorded("global_batch: 16, microbatch: 16"));
  CHECK(value(batch["compute_parts"]["forward_backward"]) > 655e-6);
  CHECK(value(batch["compute_parts"]["forward_backward"]) < 2.001 * 655e-6);
  CHECK(value(batch["compute_parts"]["optimizer"]) == Approx(45e-6).epsilon(1e-6));
  CHECK(batch["step_time"]["provenance"] == "interpolated");
  const Json tensor = step_json(recorded("global_batch: 8", "tensor: 2"));
  CHECK(value(tensor["breakdown"]["compute"]) < 700e-6);
  CHECK(value(tensor["breakdown"]["compute"]) > 350e-6);
}

TEST_CASE("a recording on its own device, on another, and on both") {
  // Its device is in no catalog: the first of the cluster is taken for it.
  const auto busy = [](const std::string& nodes) {
    std::string text = recorded("global_batch: 16", "data: 2");
    text = text.substr(0, text.find("cluster:")) + "cluster: {nodes: [" + nodes + "]}\n";
    const Json json = step_json(text, {"--fidelity", "closed"});
    return value(json["breakdown"]["compute"]);
  };
  const std::string v100 = "{device: v100_sxm2_32}", a100 = "{device: a100_sxm4_80}";
  CHECK(busy(v100 + ", " + v100) == Approx(700e-6).epsilon(1e-6));
  CHECK(busy(v100 + ", " + a100) != Approx(700e-6).epsilon(1e-3));

  const auto path = test::shared_data(
      "kineto-resnet50-v100/resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz");
  SKIP_WITHOUT_DATA(path);
  const auto step = [&](const std::string& nodes) {
    return step_json(fmt::format("workload: {{recording: {}}}\ntraining: {{global_batch: 64}}\n"
                                 "plan: {{data: 2}}\ncluster: {{nodes: [{}]}}\n"
                                 "sustained: {{overlap_penalty: 0}}\n",
                                 path->string(), nodes),
                     {"--fidelity", "closed"});
  };
  const Json on_v100 = step(v100 + ", " + v100), on_a100 = step(a100 + ", " + a100),
             mixed = step(a100 + ", " + v100);
  CHECK(on_v100["compute_from"]["recorded"] == 1.0);
  CHECK(on_a100["step_time"]["provenance"] == "extrapolated");
  CHECK(value(on_a100["breakdown"]["compute"]) < value(on_v100["breakdown"]["compute"]));
  CHECK(value(mixed["breakdown"]["compute"]) ==
        Approx((value(on_a100["breakdown"]["compute"]) + value(on_v100["breakdown"]["compute"])) /
               2));
  CHECK(value(mixed["breakdown"]["bubble"]) > 0);
}

TEST_CASE("a recording without shapes: times alone, and what to record for more") {
  const std::string text = test::text_of(test::source_file("examples/recordings/two_linears.json"));
  const std::string bare =
      test::write_scratch("bare.json", replaced(replaced(text, "Input Dims", "Left out Dims"),
                                                "Input type", "Left out type"))
          .string();
  const auto with = [&](const std::string& training, const std::string& plan,
                        const std::string& more = "") {
    return recorded(training, plan, more, bare);
  };
  const Json json = step_json(with("global_batch: 8, microbatch: 8", "data: 1"));
  CHECK(value(json["step_time"]) == Approx(1e-3).epsilon(1e-6));
  const std::string needs =
      "needs; a recording with record_shapes=True, or the execution trace of the same run in "
      "addition";
  refused(with("global_batch: 8, microbatch: 8", "tensor: 2"),
          "bare.json: has no operator shapes, which tensor parallelism " + needs);
  refused(with("global_batch: 16, microbatch: 16", "data: 1", ", samples: 8"),
          "bare.json: has no operator shapes, which microbatch 16 instead of the recorded "
          "8 " +
              needs);
}

TEST_CASE("a recording carried over to a GPU of another vendor") {
  const std::string named =
      test::write_scratch(
          "named.json",
          replaced(test::text_of(test::source_file("examples/recordings/two_linears.json")),
                   "Example GPU", "Tesla V100-SXM2-32GB"))
          .string();
  std::string there = recorded("global_batch: 8", "data: 1", "", named);
  there = there.substr(0, there.find("cluster:")) +
          "cluster: {device: mi300x, devices_per_node: 1, nodes: 1}\n";
  const Json json = step_json(there);
  check_contract(json);
  CHECK(json["step_time"]["provenance"] == "extrapolated");
  CHECK(json["compute_from"]["extrapolated"].get<double>() > 0.99);
  // FP32 and memory of MI300X against those of V100: 163.4 to 15.7 TFLOP/s, 5300 to 900 GB/s.
  const double passes = value(json["compute_parts"]["forward_backward"]);
  CHECK(passes > 655e-6 * 15.7 / 163.4);
  CHECK(passes < 655e-6 * 0.5);
  // The optimizer, recorded without shapes, goes by memory alone.
  CHECK(value(json["compute_parts"]["optimizer"]) < 45e-6 * 0.7);
  // The host is the recorded one.
  CHECK(value(json["breakdown"]["launch"]) == Approx(300e-6).epsilon(1e-6));
}

TEST_CASE("inputs that are not recordings, or not of training") {
  refused(recorded("global_batch: 8", "data: 1", "", "nowhere.json"), "nowhere.json");
  refused(recorded("global_batch: 8", "data: 1", ", layers: 3"), "workload.layers: unknown key");
}

TEST_CASE("ResNet-50, recorded on a V100, takes the recorded time within a few percent") {
  const auto path = test::shared_data(
      "kineto-resnet50-v100/resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz");
  SKIP_WITHOUT_DATA(path);
  const Ran inspected =
      test::rehearse({"inspect", path->string(), "--workload", "--format", "json"});
  REQUIRE(inspected.code == 0);
  const double measured = value(Json::parse(inspected.out)["step"]["time"]);
  const Json json = step_json(recorded("global_batch: 32", "data: 1", "", path->string()));
  check_contract(json);
  CHECK(value(json["step_time"]) == Approx(measured).epsilon(0.02));
  CHECK(json["job"]["parameters"] == 25'557'032.0);
}

TEST_CASE("the example on two kinds of devices: an even split is far slower") {
  const std::string text = test::text_of(test::source_file("examples/jobs/gpt2_xl_mixed.yaml"));
  REQUIRE(text.find("layers: 34") != std::string::npos);
  const Json uneven = step_json(text, {"--fidelity", "closed"});
  check_contract(uneven);
  const Json even = step_json(replaced(text, "layers: 34", "layers: 25"), {"--fidelity", "closed"});
  CHECK(value(even["step_time"]) == Approx(1.5 * value(uneven["step_time"])).epsilon(0.1));
  CHECK(uneven["job"]["devices"] ==
        Json::parse(
            R"([{"device": "a100_sxm4_80", "ranks": 4}, {"device": "v100_sxm2_32", "ranks": 4}])"));
  CHECK(uneven["stages"][0]["device"] == "a100_sxm4_80");
  CHECK(uneven["stages"][1]["device"] == "v100_sxm2_32");
  const Ran shown = simulate(text);
  CHECK(shown.out.starts_with("gpt2_xl on 4 × a100_sxm4_80 + 4 × v100_sxm2_32: "));
}

TEST_CASE("a recording of CPUs, whose peak is not known, has no MFU") {
  const std::string job = "examples/jobs/cpu_ranks.yaml";
  const auto json =
      nlohmann::json::parse(test::rehearse({"simulate", job, "--format", "json"}).out);
  CHECK(json["mfu"].is_null());
  CHECK(json["hfu"].is_null());
  CHECK(test::rehearse({"simulate", job}).out.find("MFU  ") == std::string::npos);
}

TEST_CASE("a recorded update is divided among ranks that shard the optimizer") {
  const auto part = [](const nlohmann::json& json, const std::string& kind) {
    double sum = 0;
    for (const auto& of : json["path_parts"])
      if (of["kind"] == kind) sum += of["time"]["value"].get<double>();
    return sum;
  };
  const std::string text = test::text_of(test::source_file("examples/jobs/sharded_update.yaml"));
  const auto with = [&](const std::string& plan) {
    std::string job = text;
    job.replace(job.find("zero: 1"), 7, plan);
    job.replace(job.find("../recordings"), 13, test::source_file("examples/recordings").string());
    return nlohmann::json::parse(
        test::rehearse(
            {"simulate", test::write_scratch("job.yaml", job).string(), "--format", "json"})
            .out);
  };
  const auto sharded = with("zero: 1"), whole = with("zero: 0");
  CHECK(part(whole, "optimizer") == Approx(160e-6));
  // 48 MiB at 0.892 of 2,039 GB/s, and calls of 10.2 us.
  const double moved = 48 * 1024 * 1024 / (0.892264 * 2039e9);
  CHECK(part(sharded, "optimizer") ==
        Approx(160e-6 * (moved / 2 + 10.225e-6) / (moved + 10.225e-6)).epsilon(1e-3));
  for (const auto& json : {sharded, whole}) {
    CHECK(part(json, "compute") == Approx(720e-6));
    CHECK(json["step_time"]["value"].get<double>() ==
          Approx(840e-6 + part(json, "optimizer") + part(json, "communication")));
  }
}

TEST_CASE("a stage on a host is refused") {
  refused(
      "workload: {model: gpt2_medium}\ntraining: {global_batch: 64}\nplan: {data: 2}\n"
      "cluster: {nodes: [{device: a100_sxm4_80}, {device: cpu}]}\n",
      "stage 0 is on a 'cpu'; a GPU; only parameter servers may run on hosts");
}

}  // namespace
}  // namespace rehearse::one_node
