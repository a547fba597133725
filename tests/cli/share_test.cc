// --share-with and --share: what each of two jobs loses to the other, and wrong requests.
#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/file.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::checked_json_of;
using test::Json;
using test::Ran;

const std::string kBert = "examples/sharing/bert.yaml";
const std::string kResnet = "examples/sharing/resnet.yaml";
const std::string kParallel = "examples/sharing/data_parallel.yaml";

Json shared(const std::string& job, const std::string& other, const std::string& share,
            std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"simulate", job, "--share-with", other, "--share", share});
  return checked_json_of(more);
}

double value(const Json& tenant, const std::string& key) { return tenant[key]["value"]; }
double lost(const Json& tenant, const std::string& key) { return tenant["loss"][key]["value"]; }

TEST_CASE("simulate --share-with: every policy says what each job loses, and losses add up") {
  const Ran alone = test::rehearse({"simulate", kBert, "--format", "json", "--quiet"});
  const double bert = Json::parse(alone.out)["step_time"]["value"];
  for (const char* share : {"mps", "mps:40%", "mps:40%,30%", "priority", "timeslice",
                            "timeslice:5ms,1ms", "exclusive"}) {
    INFO(share);
    const Json json = shared(kBert, kResnet, share);
    REQUIRE(json["tenants"].size() == 2);
    CHECK(json["tenants"][0]["name"] == "bert.yaml");
    CHECK(value(json["tenants"][0], "alone") == bert);
    for (const Json& tenant : json["tenants"]) {
      CHECK(value(tenant, "slowdown") > 1 - 1e-9);
      CHECK(value(tenant, "shared") ==
            Approx(value(tenant, "alone") * value(tenant, "slowdown")).epsilon(1e-9));
      double sum = 0;
      for (const char* part :
           {"compute", "memory_bandwidth", "waiting", "changes", "communication"})
        sum += lost(tenant, part);
      CHECK(sum == Approx(lost(tenant, "total")).margin(1e-12));
      CHECK(sum == Approx(value(tenant, "shared") - value(tenant, "alone")).margin(1e-9));
      // What is lost is as uncertain as the slowdown, also where that is none; no part more so.
      const auto width = [](const Json& of) {
        return of["high"].get<double>() - of["low"].get<double>();
      };
      const double all = value(tenant, "alone") * width(tenant["slowdown"]);
      CHECK(width(tenant["loss"]["total"]) == Approx(all));
      for (const Json& part : tenant["loss"]) CHECK(width(part) <= all * (1 + 1e-9));
    }
    CHECK(json["gain"].get<double>() > 1);
  }
}

TEST_CASE("simulate --share-with: each policy has its own cost") {
  const Json mps = shared(kBert, kResnet, "mps:40%"), slices = shared(kBert, kResnet, "timeslice"),
             first = shared(kBert, kResnet, "priority");
  CHECK(mps["share"]["caps"] == Json{0.4, 0.6});
  CHECK(lost(mps["tenants"][0], "compute") > lost(mps["tenants"][1], "compute"));
  CHECK(lost(mps["tenants"][0], "waiting") == 0);
  CHECK(slices["share"]["quantum"]["value"] == 0.002);
  for (const Json& tenant : slices["tenants"]) {
    CHECK(lost(tenant, "waiting") > 0);
    CHECK(lost(tenant, "changes") > 0);
    CHECK(lost(tenant, "compute") == 0);
    // As wide as pairs on K80 say.
    CHECK(tenant["slowdown"]["high"].get<double>() ==
          Approx(1.28 * value(tenant, "slowdown")).epsilon(1e-9));
  }
  CHECK(value(first["tenants"][0], "slowdown") == Approx(1));
  CHECK(value(first["tenants"][1], "slowdown") > 1.3);
  // Space sharing is as uncertain as pairs on V100, whatever the run says.
  CHECK(mps["tenants"][1]["slowdown"]["high"].get<double>() >
        2.5 * value(mps["tenants"][1], "slowdown"));
  // Without --share: what is assumed is said.
  const Json plain = checked_json_of({"simulate", kBert, "--share-with", kResnet});
  CHECK(plain["share"] == slices["share"]);
  CHECK_THAT(plain["notes"][0].get<std::string>(), Contains("assumed time slices of 2.00 ms"));
}

/// Two ResNet-50 on one GPU, and how many times as long their steps took together as alone: Gavel's
/// tables (stanford-futuredata/gavel, simulation_throughputs.json), steps alone ÷ together.
struct MeasuredPair {
  int batch, other;
  double slowdown, its;
};

TEST_CASE("simulate --share-with: pairs of ResNet-50 that were measured lie in the interval") {
  const auto job = [](const std::string& device, int batch) {
    return test::write_scratch(fmt::format("{}_{}.yaml", device, batch),
                               fmt::format("workload: {{model: resnet50}}\n"
                                           "training: {{global_batch: {1}, microbatch: {1}, dtype: "
                                           "fp32}}\ncluster: {{device: {0}, devices_per_node: 1, "
                                           "nodes: 1}}\n",
                                           device, batch))
        .string();
  };
  const auto error = [&](const std::string& device, const std::string& share,
                         const std::vector<MeasuredPair>& pairs) {
    double sum = 0;
    for (const MeasuredPair& pair : pairs) {
      INFO(device << ", " << pair.batch << " with " << pair.other);
      const Json tenants =
          shared(job(device, pair.batch), job(device, pair.other), share)["tenants"];
      const double measured[] = {pair.slowdown, pair.its};
      for (std::size_t t = 0; t < 2; ++t) {
        const Json& slowdown = tenants[t]["slowdown"];
        CHECK(slowdown["low"].get<double>() <= measured[t]);
        CHECK(slowdown["high"].get<double>() >= measured[t]);
        sum += std::abs(measured[t] / slowdown["value"].get<double>() - 1);
      }
    }
    return sum / (2.0 * static_cast<double>(pairs.size()));
  };
  CHECK(error("k80", "timeslice",
              {{16, 16, 1.98, 1.98},
               {16, 32, 2.43, 1.99},
               {16, 64, 2.37, 1.67},
               {32, 32, 2.16, 2.16},
               {32, 64, 2.16, 1.80}}) < 0.11);
  CHECK(error("v100_sxm2_16", "mps",
              {{16, 16, 3.16, 3.16},
               {16, 32, 3.17, 2.46},
               {16, 64, 3.28, 2.33},
               {16, 128, 3.44, 2.56},
               {32, 32, 2.73, 2.73},
               {32, 64, 2.40, 2.04},
               {64, 64, 2.01, 2.01}}) < 1);
}

TEST_CASE("simulate --share-with: jobs of several ranks take turns, and share links by message") {
  const Json turns = shared(kParallel, kParallel, "crossover");
  const double gain = turns["gain"];
  CHECK(gain > 1.1);
  CHECK(gain < 1.6);
  CHECK(lost(turns["tenants"][0], "waiting") > 0);
  const Json whole = shared(kParallel, kParallel, "exclusive");
  CHECK(whole["gain"].get<double>() < gain);
  // Both send at once where they do not take turns.
  const Json together = shared(kParallel, kParallel, "mps");
  CHECK(lost(together["tenants"][0], "communication") > 0);
  const Json closed = shared(kParallel, kParallel, "mps", {"--fidelity", "closed"});
  CHECK(lost(closed["tenants"][0], "communication") == 0);
  CHECK_THAT(closed["notes"].dump(), Contains("one rank is simulated for all equivalent ranks"));
  const Json unfolded = shared(kParallel, kParallel, "mps", {"--fidelity", "closed", "--unfold"});
  CHECK(lost(unfolded["tenants"][0], "communication") == 0);
  CHECK_THAT(unfolded["notes"].dump(), Contains("do not share links"));
}

TEST_CASE("simulate --share-with: an impossible combination is an error of one line") {
  const auto share_with = [](const std::string& other, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"simulate", kBert, "--share-with", other};
    all.insert(all.end(), more.begin(), more.end());
    return test::rehearse(all);
  };
  const auto share = [&](const std::string& text) {
    return share_with(kResnet, {"--share", text});
  };
  test::check_failed(share("mps:140%"), 2, "140 % of the multiprocessors is out of range");
  test::check_failed(share("mps:60%,50%"), 2, "more than 100 %");
  test::check_failed(share("mps:100%"), 2, "leaves nothing for the other");
  test::check_failed(share("mps:0%"), 2, "never runs");
  test::check_failed(share("mps:-3%"), 2, "never runs");
  test::check_failed(share("mps:40"), 2, "'40' is not a percentage");
  test::check_failed(share("mps:nan%"), 2, "not a percentage");
  test::check_failed(share("mps:10%,10%,10%"), 2, "3 shares for two jobs");
  test::check_failed(share("timeslize"), 2, "did you mean 'timeslice'?");
  test::check_failed(share("timeslice:2"), 2, "has no unit");
  test::check_failed(share("timeslice:0ms"), 2, "'0ms' is too short for a turn");
  test::check_failed(share("timeslice:1ms,1ms,1ms"), 2, "more than a quantum and a switch time");
  test::check_failed(share("crossover:1"), 2, "takes no value");
  test::check_failed(share("crossover"), 1, "has no communication during which");
  test::check_failed(test::rehearse({"simulate", kBert, "--share", "mps"}), 2, "--share-with");
  test::check_failed(share_with(kResnet, {"--slice", "2g.20gb"}), 2,
                     "--slice excludes --share-with");
  test::check_failed(share_with(kResnet, {"--fidelity", "simgrid"}), 2,
                     "SimGrid does not model shared devices");
  test::check_failed(share_with("none.yaml"), 1, "none.yaml");
  test::check_failed(share_with(kParallel), 1,
                     "the second job has 4 ranks, but the cluster has 1 device");
  const auto job = [](const std::string& device, const std::string& batch) {
    return test::write_scratch(
               fmt::format("{}_{}.yaml", device, batch),
               fmt::format("workload: {{model: bert_large, sequence: 128}}\n"
                           "training: {{global_batch: {1}, microbatch: {1}, dtype: fp16}}\n"
                           "cluster: {{device: {0}, devices_per_node: 1, nodes: 1}}\n",
                           device, batch))
        .string();
  };
  test::check_failed(
      share_with(job("h100_sxm5_80", "4")), 1,
      "rank 0 of the second job is on h100_sxm5_80, but rank 0 of the first is on a100_sxm4_80");
  test::check_failed(share_with(job("a100_sxm4_80", "512")), 1, "of the 79.2 GiB");
  test::check_failed(
      test::rehearse({"simulate", "--chakra", "a", "--cluster", "b", "--share-with", "c"}), 2,
      "--share-with needs a job file");
}

TEST_CASE("simulate --slice: the price is the slice's share, and ranks have no links") {
  const auto job = [](const std::string& more) {
    return test::write_scratch(
               "p4d.yaml", "workload: {model: gpt2}\ntraining: {global_batch: 8, microbatch: 1}\n" +
                               more +
                               "cluster: {instance: p4d.24xlarge, count: 1}\n"
                               "region: us-east-1\n")
        .string();
  };
  // Half of one of eight GPUs: 3g has half of the memory.
  const Json whole = checked_json_of({"simulate", job("")}),
             slice = checked_json_of({"simulate", job(""), "--slice", "3g.20gb"});
  const double ratio =
      slice["cost_per_step"]["value"].get<double>() / whole["cost_per_step"]["value"].get<double>();
  CHECK(ratio == Approx(value(slice, "step_time") / value(whole, "step_time") / 16).epsilon(1e-6));
  CHECK_THAT(slice["notes"].dump(),
             Contains("price: 0.5 of one of the 8 GPUs of 1 × p4d.24xlarge"));
  test::check_failed(test::rehearse({"simulate", job("plan: {data: 8}\n"), "--slice", "3g.20gb"}),
                     1, "8 ranks on slices");
}

TEST_CASE("replay --share-with: recordings that sum gradients take turns in each of their steps") {
  // Kernels of 500 us, then 100 us of a collective, of every 1000 us: the other computes meanwhile.
  std::string text = test::text_of(test::source_file(test::kExample));
  const std::string relu = "\"name\": \"relu\"";
  for (std::size_t at = 0; (at = text.find(relu, at)) != std::string::npos;)
    text.replace(at, relu.size(), "\"name\": \"ncclKernel_AllReduce_RING_LL_Sum_float\"");
  const std::string file = test::write_scratch("sums.json", text).string();
  const Json turns =
                 checked_json_of({"replay", file, "--share-with", file, "--share", "crossover"}),
             whole =
                 checked_json_of({"replay", file, "--share-with", file, "--share", "exclusive"});
  for (const Json& tenant : turns["tenants"]) {
    CHECK(value(tenant, "slowdown") >= 1 - 1e-9);
    CHECK(value(tenant, "slowdown") < 1.5);
    CHECK(lost(tenant, "waiting") == Approx(lost(tenant, "total")).margin(1e-12));
  }
  CHECK(turns["gain"].get<double>() >= whole["gain"].get<double>());
}

/// The example, recorded on this GPU.
std::string recorded_on(const std::string& gpu, const std::string& file) {
  std::string text = test::text_of(test::source_file(test::kExample));
  const std::string name = "Example GPU";
  REQUIRE(text.find(name) != std::string::npos);
  text.replace(text.find(name), name.size(), gpu);
  return test::write_scratch(file, text).string();
}

TEST_CASE("replay and whatif --share-with: two recordings on one GPU") {
  const std::string a = recorded_on("NVIDIA A100-SXM4-80GB", "a.json"),
                    b = recorded_on("NVIDIA A100-SXM4-80GB", "b.json");
  const double alone = checked_json_of({"replay", a})["step_time"]["simulated"]["value"];
  for (const char* share : {"mps", "mps:30%", "priority", "timeslice", "exclusive"}) {
    INFO(share);
    const Json json = checked_json_of({"replay", a, "--share-with", b, "--share", share});
    REQUIRE(json["tenants"].size() == 2);
    CHECK(value(json["tenants"][0], "alone") == Approx(alone));
    for (const Json& tenant : json["tenants"]) CHECK(value(tenant, "slowdown") > 1 - 1e-9);
    CHECK_THAT(json["notes"].dump(), Contains("does not contain memory use"));
  }
  // Faster kernels leave the other more.
  const Json recorded =
                 checked_json_of({"whatif", a, "--share-with", b, "--share", "timeslice:100us,0s"}),
             edited = checked_json_of({"whatif", a, "--scale", "gpu:0.5", "--share-with", b,
                                       "--share", "timeslice:100us,0s"});
  CHECK(value(edited["tenants"][0], "alone") < value(recorded["tenants"][0], "alone"));
  CHECK(value(edited["tenants"][1], "shared") < value(recorded["tenants"][1], "shared"));
  // A timeline of the first job with the second.
  const auto drawn = test::scratch_folder() / "shared.json";
  CHECK(test::rehearse({"replay", a, "--share-with", b, "--perfetto", drawn.string()}).code == 0);
  CHECK(std::filesystem::exists(drawn));
  CHECK_THAT(test::rehearse({"replay", a, "--share-with", b}).out,
             Contains("waiting for its turn"));

  // A folder is named with a trailing slash or without.
  const auto run = test::scratch_folder() / "run_a";
  std::filesystem::create_directories(run);
  std::filesystem::copy_file(a, run / "a.json", std::filesystem::copy_options::overwrite_existing);
  CHECK(checked_json_of({"replay", run.string() + "/", "--share-with", b})["tenants"][0]["name"] ==
        "run_a");

  const std::string h100 = recorded_on("NVIDIA H100 80GB HBM3", "h.json");
  test::check_failed(test::rehearse({"replay", a, "--share-with", h100}), 1,
                     "the first from 'NVIDIA A100-SXM4-80GB'");
  test::check_failed(test::rehearse({"replay", a, "--share", "mps"}), 2, "--share-with");
  test::check_failed(test::rehearse({"replay", a, "--share-with", "none.json"}), 1, "none.json");
  test::check_failed(test::rehearse({"whatif", a, "--share-with", "traces/train-cpu-epyc"}), 1,
                     "has no GPU work");
}

TEST_CASE("replay --share-with: recordings of CPUs share a core per rank") {
  const Json json =
      checked_json_of({"replay", "examples/cpu_ranks/rank0.json", "--share-with",
                       "examples/cpu_ranks/rank0.json", "--share", "timeslice:1ms,1us"});
  REQUIRE(json["tenants"].size() == 2);
  // Each works nearly all of the time, so that two need two times as long.
  for (const Json& tenant : json["tenants"]) {
    CHECK(value(tenant, "slowdown") > 1.6);
    CHECK(value(tenant, "slowdown") < 2.1);
  }
  const Ran mixed = test::rehearse({"replay", "examples/cpu_ranks/rank0.json", "--share-with",
                                    "examples/recordings/three_steps.json"});
  CHECK(mixed.code == 1);
  CHECK_THAT(mixed.errors, Contains("has no GPU work, and the other recording has"));
}

}  // namespace
}  // namespace rehearse
