// Jobs whose prompts have a pool of their own: simulate, plan, recommend, launch commands, and one line
// for wrong input.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::serving_pools {
namespace {

using test::Json;

constexpr char kLoad[] = "rate: 20 per s, requests: 100, input: {uniform: [400, 2000]}, output: 40";

std::string job(const std::string& prefill, const std::string& more = "plan: {tensor: 2}",
                const std::string& load = kLoad) {
  return test::write_scratch(
             "pools.yaml",
             fmt::format("serve:\n  model: llama3_8b\n  {}\n{}  load: {{{}}}\n"
                         "cluster: {{instance: p5.48xlarge, count: 1}}\nregion: us-east-1\n",
                         more, prefill.empty() ? "" : "  prefill: {" + prefill + "}\n", load))
      .string();
}

const std::string kFast = "plan: {data: 2}, transfer: {rate: 50 GB/s, latency: 20 us}";

Json simulated(const std::string& file) { return test::checked_json_of({"simulate", file}); }

TEST_CASE("both pools, and the parts of a request's time") {
  const Json json = simulated(job(kFast));
  CHECK(json["server"]["devices"] == 4);
  for (const char* pool : {"prefill", "decode"}) {
    const Json& p = json["pools"][pool];
    CHECK(p["devices"] == 2);
    CHECK(test::value(p["busy"]) > 0.1);
    CHECK(test::value(p["busy"]) <= 1.001);
    CHECK(p["blocks"] > 1000);
  }
  CHECK(json["pools"]["prefill"]["replicas"] == 2);
  CHECK(json["cache"]["blocks"] == json["pools"]["decode"]["blocks"]);
  double sum = 0;
  for (const auto& [part, time] : json["time_of_request"].items()) sum += test::value(time);
  CHECK(sum == Approx(test::value(json["end_to_end"]["mean"])));
  CHECK(json["time_of_request"]["wait_for_blocks"]["value"] == 0);
  // Llama 3 8B caches 2 · 32 layers · 8 heads · 128 · 2 bytes = 128 KiB per token. One GPU sends
  // them at 50 GB/s, so 400 to 2,000 tokens take 1.05 to 5.24 ms, and 20 us.
  CHECK(test::value(json["transfer"]["p50"]) > 1.07e-3);
  CHECK(test::value(json["transfer"]["p50"]) < 5.27e-3);
}

TEST_CASE("pools on two kinds of GPU") {
  const auto on = [](const std::string& device, const std::string& cluster) {
    return test::write_scratch(
               "kinds.yaml",
               fmt::format(
                   "serve:\n  model: llama3_8b\n  prefill: {{{}transfer: {{rate: 50 GB/s}}}}\n"
                   "  load: {{{}}}\ncluster: {}\n",
                   device, kLoad, cluster))
        .string();
  };
  const auto of = [](const Json& json, const char* part) {
    return test::value(json["time_of_request"][part]);
  };
  const std::string a100 = "{device: a100_sxm4_80, devices_per_node: 1, nodes: 1}";
  const auto run = [](const std::string& file) { return test::json_of({"simulate", file}); };
  const Json both = run(on("device: h100_sxm5_80, ", a100)),
             h100 = run(on("", "{device: h100_sxm5_80, devices_per_node: 2, nodes: 1}")),
             slow = run(on("", "{device: a100_sxm4_80, devices_per_node: 2, nodes: 1}"));
  // Prompts take as long as on H100, and tokens nearly as long as on A100.
  CHECK(of(both, "prefill") == Approx(of(h100, "prefill")));
  CHECK(of(slow, "prefill") > 1.3 * of(both, "prefill"));
  CHECK(test::value(both["tpot"]["p50"]) == Approx(test::value(slow["tpot"]["p50"])).epsilon(0.1));
  CHECK(both["cost_per_million_tokens"].is_null());
  test::check_failed(test::rehearse({"plan", on("device: h100_sxm5_80, ", a100)}), 1,
                     "one kind of GPU");
  test::check_failed(test::rehearse({"simulate", on("device: h100, ", a100)}), 1, "h100_sxm5_80");
}

TEST_CASE("prompts in a pool of their own leave the gaps between tokens alone") {
  const Json apart = simulated(job(kFast)), together = simulated(job("", "plan: {data: 4}"));
  CHECK(test::value(apart["itl"]["p99"]) < 0.7 * test::value(together["itl"]["p99"]));
}

TEST_CASE("a slow network delays the first token, by layer less than whole") {
  const auto ttft = [](const char* transfer) {
    return test::value(simulated(
        job(fmt::format("plan: {{data: 2}}, transfer: {{{}}}", transfer)))["ttft"]["mean"]);
  };
  const double fast = ttft("rate: 50 GB/s"), slow = ttft("rate: 6 GB/s, by: whole"),
               by_layer = ttft("rate: 6 GB/s, by: layer");
  CHECK(slow > fast + 0.01);
  CHECK(by_layer < slow - 0.01);
}

TEST_CASE("a full pool for tokens makes prompts wait") {
  const Json json = simulated(job("plan: {data: 2}, transfer: {rate: 50 GB/s}",
                                  "plan: {tensor: 1}\n  flags: {memory: 0.245}",
                                  "closed: 64, requests: 128, input: 2000, output: 40"));
  CHECK(test::value(json["time_of_request"]["wait_for_blocks"]) > 0.01);
  CHECK(test::value(json["pools"]["decode"]["peak_occupancy"]) > 0.9);
  CHECK(json["saturated"] == true);
}

TEST_CASE("plan searches the split of the GPUs, and simulate gives the same numbers") {
  const std::string open = "transfer: {rate: 50 GB/s}", slo = "slo: {ttft: 300 ms, tpot: 12 ms}";
  const Json json = test::checked_json_of({"plan", job(open, slo + "\n  plan: {tensor: 2}")});
  std::size_t splits = 0;
  for (const Json& each : json["best"]) {
    CHECK(each["devices"] <= 8);
    splits += each["prefill"]["plan"] != json["best"][0]["prefill"]["plan"];
  }
  CHECK(splits > 0);
  const Json& best = json["best"].front();
  const std::string same = job(
      fmt::format("plan: {}, flags: {}, transfer: {}", best["prefill"]["plan"].dump(),
                  best["prefill"]["flags"].dump(), best["prefill"]["transfer"].dump()),
      fmt::format("{}\n  plan: {}\n  flags: {}", slo, best["plan"].dump(), best["flags"].dump()));
  const Json alone = simulated(same);
  CHECK(best["mean_ttft"] == alone["ttft"]["mean"]);
  CHECK(best["mean_tpot"] == alone["tpot"]["mean"]);
  CHECK(best["pools"] == alone["pools"]);
  const Json offers = test::document(test::rehearse(
      {"recommend", same, "--provider", "aws", "--counts", "1", "--format", "json"}));
  CHECK(offers["options"][0]["prefill"]["plan"] == best["prefill"]["plan"]);
}

TEST_CASE("the launch command has a part for each role") {
  struct Case {
    const char* framework;
    std::vector<const char*> has;
  };
  for (const Case& c : std::vector<Case>{
           {"vllm", {"prefill)\nexec vllm serve", "decode)\nexec vllm serve", "NixlConnector"}},
           {"sglang", {"--disaggregation-mode prefill", "--disaggregation-mode decode"}},
           {"trtllm", {"cache_transceiver_config:", "disable_overlap_scheduler: true"}}}) {
    const std::string file =
        job(kFast, fmt::format("framework: {}\n  plan: {{tensor: 2}}", c.framework));
    const test::Ran ran = test::rehearse({"plan", file, "--emit", c.framework});
    CHECK(ran.code == 0);
    for (const char* words : c.has) {
      INFO(words << " in " << ran.out << ran.errors);
      CHECK(ran.out.find(words) != std::string::npos);
    }
    CHECK(ran.errors.find("in front of") != std::string::npos);
  }
}

TEST_CASE("wrong pools get one line") {
  struct Case {
    std::string prefill, more, says;
  };
  const std::string one = "plan: {tensor: 2}";
  for (const Case& c :
       std::vector<Case>{{"plan: {data: 2}", one, "transfer: is missing"},
                         {"transfer: {latency: 1 us}", one, "rate: is missing"},
                         {"transfer: {rate: 0 GB/s}", one, "rate: is too low"},
                         {"transfer: {rate: 1 GB/s, by: block}", one, "by"},
                         {"plan: {data: 7}, transfer: {rate: 1 GB/s}", one, "9 GPUs of the 8"},
                         {"flags: {chunked_prefill_size: 9}, transfer: {rate: 1 GB/s}", one,
                          "is a flag of sglang"},
                         {"flags: {memory: 0.1}, transfer: {rate: 1 GB/s}", one, "does not fit"},
                         {"speed: 3, transfer: {rate: 1 GB/s}", one, "speed"}})
    test::check_failed(test::rehearse({"simulate", job(c.prefill, c.more)}), 1, c.says);
}

}  // namespace
}  // namespace rehearse::serving_pools
