// Two servers on the same GPUs, and one line for those that cannot share them.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::serving_tenants {
namespace {

using test::Json;

std::string job(const std::string& name, const std::string& server, const std::string& rate) {
  return test::write_scratch(
             name,
             fmt::format("serve:\n  model: llama3_8b\n  flags: {{memory: 0.45}}\n  {}\n  load: "
                         "{{rate: {} per s, requests: 60, input: 400, output: 50}}\n"
                         "cluster: {{device: h100_sxm5_80, devices_per_node: 1, nodes: 1}}\n",
                         server, rate))
      .string();
}

TEST_CASE("two servers on one GPU slow each other down by their load") {
  const std::string file = job("one.yaml", "framework: vllm", "20"),
                    busy = job("busy.yaml", "framework: vllm", "20"),
                    idle = job("idle.yaml", "framework: vllm", "0.5");
  for (const std::string policy : {"mps", "timeslice"}) {
    INFO(policy);
    const auto slowed = [&](const std::string& other) {
      const Json json =
          test::checked_json_of({"simulate", file, "--share-with", other, "--share", policy});
      const Json& server = json["servers"].front();
      CHECK(server["tpot"]["shared"]["low"] <= server["tpot"]["alone"]["value"]);
      CHECK(server["tpot"]["shared"]["provenance"] == "extrapolated");
      return test::value(server["tpot"]["shared"]) / test::value(server["tpot"]["alone"]);
    };
    const double by_busy = slowed(busy), by_idle = slowed(idle);
    CHECK(by_busy > 1.5);
    CHECK(by_idle > 1);
    CHECK(by_idle < 1.25);
  }
}

TEST_CASE("servers that cannot share a GPU are one line") {
  const std::string file = job("one.yaml", "framework: vllm", "2");
  const auto fails = [&](const std::string& other, const std::string& policy,
                         const std::string& says) {
    test::check_failed(test::rehearse({"simulate", file, "--share-with", other, "--share", policy}),
                       1, says);
  };
  std::string large =
      test::write_scratch("large.yaml",
                          "serve:\n  model: llama3_8b\n  load: {closed: 1, input: 10, output: 10}\n"
                          "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n")
          .string();
  fails(large, "mps", "memory: 0.45");
  fails(file, "priority", "--share mps");
  const std::string other =
      test::write_scratch("a100.yaml",
                          "serve:\n  model: llama3_8b\n  flags: {memory: 0.45}\n  load: {closed: "
                          "1, input: 10, output: 10}\n"
                          "cluster: {device: a100_sxm4_80, devices_per_node: 1, nodes: 1}\n")
          .string();
  fails(other, "mps", "the same GPUs");
}

}  // namespace
}  // namespace rehearse::serving_tenants
