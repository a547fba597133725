// Jobs whose replicas follow the load, and one line for wrong input.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::serving_scaling {
namespace {

using test::Json;

std::string job(const std::string& scaling, const std::string& plan = "tensor: 2") {
  return test::write_scratch(
             "scaled.yaml",
             fmt::format(
                 "serve:\n  model: llama3_8b\n  plan: {{{}}}\n{}"
                 "  load: {{rate: 60 per s, swing: 1, period: 40 s, requests: 2400, input: 500, "
                 "output: 200}}\n"
                 "cluster: {{instance: p5.48xlarge, count: 1}}\nregion: us-east-1\n",
                 plan, scaling.empty() ? "" : "  scaling: {" + scaling + "}\n"))
      .string();
}

Json simulated(const std::string& file) { return test::checked_json_of({"simulate", file}); }

TEST_CASE("as many replicas at least as at most are the replicas of a plan") {
  const Json scaled = simulated(job("replicas: [4, 4], target: 10")),
             fixed = simulated(job("", "tensor: 2, data: 4"));
  for (const char* key : {"ttft", "tpot", "end_to_end", "cost_per_million_tokens",
                          "energy_per_token", "capacity", "overloaded", "load_curve"})
    CHECK(scaled[key] == fixed[key]);
}

TEST_CASE("replicas that follow a swinging rate cost less, by their time") {
  const std::string rule = "replicas: [1, 4], target: 40, every: 1 s, hold: 2 s";
  const Json scaled = simulated(job(rule)), fixed = simulated(job("replicas: [4, 4], target: 1"));
  const double time = test::value(scaled["scaling"]["gpu_time"]),
               all = test::value(fixed["scaling"]["gpu_time"]);
  CHECK(all == Approx(8 * test::value(fixed["duration"])));
  CHECK(time < 0.8 * all);
  CHECK(time ==
        Approx(test::value(scaled["scaling"]["replicas"]) * 2 * test::value(scaled["duration"])));
  CHECK(test::value(scaled["cost_per_million_tokens"]) /
            test::value(fixed["cost_per_million_tokens"]) ==
        Approx(time / all));
  // Llama 3 8B in half precision has 8.03e9 weights of 2 bytes: 16.06 s at 1 GB/s.
  const Json slow = simulated(job(rule + ", start: 2 s, weights: {from: remote, rate: 1 GB/s}"));
  CHECK(test::value(slow["scaling"]["start"]) == Approx(18.1).epsilon(0.02));
  CHECK(test::value(slow["ttft"]["p99"]) > 2 * test::value(scaled["ttft"]["p99"]));
}

TEST_CASE(
    "plan searches layouts and targets of replicas that follow the load, and pays for those that "
    "there are") {
  const std::string slo = "slo: {ttft: 500 ms, tpot: 30 ms}\n";
  const auto searched = [&](const std::string& scaling, const std::string& plan) {
    return test::write_scratch(
               "searched.yaml",
               "serve:\n  model: llama3_8b\n  flags: {max_num_seqs: 64, max_num_batched_tokens: "
               "2048}\n  " +
                   slo + scaling + plan +
                   "  load: {rate: 60 per s, swing: 1, period: 40 s, requests: 1200, "
                   "input: 500, output: 200}\n"
                   "cluster: {instance: p5.48xlarge, count: 1}\nregion: us-east-1\n")
        .string();
  };
  const Json found = test::checked_json_of(
      {"plan", searched("  scaling: {replicas: [1, 4], every: 1 s, hold: 2 s}\n", "")});
  const Json& best = found["best"].front();
  // The same setting simulated alone.
  const Json alone = simulated(searched("  scaling: " + best["scaling_rule"].dump() + "\n",
                                        "  plan: " + best["plan"].dump() + "\n"));
  CHECK(best["mean_ttft"] == alone["ttft"]["mean"]);
  const double paid = test::value(alone["scaling"]["gpu_time"]) / test::value(alone["duration"]);
  CHECK(test::value(best["mean_devices"]) == Approx(paid));
  CHECK(test::value(best["goodput_per_device"]) == Approx(test::value(alone["goodput"]) / paid));
  CHECK(paid < best["devices"].get<double>());
  // A fixed number of replicas is among those that a rule may keep.
  const Json fixed = test::checked_json_of({"plan", searched("", "")});
  CHECK(test::value(best["goodput_per_device"]) >
        1.05 * test::value(fixed["best"].front()["goodput_per_device"]));
}

TEST_CASE("instances are paid for as long as their replicas are there") {
  const auto cheapest = [](const std::string& scaling) {
    const std::string file =
        test::write_scratch(
            "rented.yaml",
            "serve:\n  model: llama3_8b\n  flags: {max_num_seqs: 64}\n  slo: {ttft: 500 ms}\n" +
                scaling +
                "  load: {rate: 60 per s, swing: 1, period: 40 s, requests: 1200, "
                "input: 500, output: 200}\n"
                "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n")
            .string();
    const Json json = test::json_of({"recommend", file, "--provider", "aws", "--counts", "4"});
    return test::value(json["options"].front()["cost_per_million_tokens"]);
  };
  CHECK(cheapest("  scaling: {replicas: [1, 4], every: 1 s, hold: 2 s}\n") < 0.9 * cheapest(""));
}

TEST_CASE("scaling that no server could follow is one line") {
  const auto fails = [](const std::string& file, const std::string& says,
                        const char* command = "simulate") {
    test::check_failed(test::rehearse({command, file}), 1, says);
  };
  fails(job("replicas: [3, 2], target: 4"), "serve.scaling.replicas: is no range");
  fails(job("replicas: [1, 2]"), "has no target");
  fails(job("replicas: [1, 2], signal: busy, target: 3"), "serve.scaling.target: is out of range");
  fails(job("replicas: [1, 2], signal: ttft, target: 3"), "serve.scaling.target");
  fails(job("replicas: [1, 5], target: 4"), "10 GPUs of the 8");
  fails(job("replicas: [1, 2], target: 4", "data: 2"), "given twice");
  fails(job("replicas: [1, 2], target: 4, weights: {from: disk, rate: 1 GB/s}"), "nvme");
  fails(job("replicas: [1, 2], signal: ttft"), "has no target", "plan");
}

}  // namespace
}  // namespace rehearse::serving_scaling
