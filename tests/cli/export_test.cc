// rehearse export: the files, and that simulate gives the same step from them.
#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"

namespace rehearse {
namespace {

using test::check_failed;
using test::value;

constexpr char kCluster[] =
    "cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 1, intra_node: nvswitch}\n";
constexpr char kJob[] =
    "workload: {model: gpt, hidden: 1024, layers: 8, heads: 16, sequence: 512, vocabulary: 51200}\n"
    "training: {global_batch: 16, microbatch: 1, dtype: bf16}\n"
    "plan: {tensor: 2, data: 2, pipeline: 2}\n";

TEST_CASE("export and simulate: ranks of a recording, as they were and edited") {
  const std::string prefix = test::scratch_folder() / "ranks";
  const auto of = [&](std::vector<std::string> edits) {
    std::vector<std::string> arguments = {"export", "examples/ranks", "--chakra", prefix};
    arguments.insert(arguments.end(), edits.begin(), edits.end());
    const test::Json written = test::checked_json_of(arguments);
    CHECK(written["files"]["ranks"] == 2);
    const test::Json simulated = test::json_of({"simulate", "--chakra", prefix});
    CHECK(value(simulated["step_time"]) == value(written["duration"]));
    return value(written["duration"]);
  };
  CHECK(of({"--scale", "kernel=gemm*:0.5"}) < of({}));
}

TEST_CASE("export and simulate: a job of tensor, data and pipeline ranks") {
  const std::string job = test::write_scratch("job.yaml", std::string(kJob) + kCluster);
  const std::string cluster = test::write_scratch("cluster.yaml", kCluster);
  const std::string prefix = test::scratch_folder() / "gpt";
  const test::Json written = test::checked_json_of({"export", job, "--chakra", prefix});
  std::vector<std::string> simulate = {"simulate", "--chakra", prefix, "--cluster", cluster};
  const std::string back = written["simulate"];
  if (const auto at = back.find("--interference "); at != std::string::npos)
    simulate.insert(simulate.end(), {"--interference", back.substr(at + 15)});
  for (const char* fidelity : {"closed", "message"}) {
    const test::Json planned = test::json_of({"simulate", job, "--fidelity", fidelity});
    std::vector<std::string> arguments = simulate;
    arguments.insert(arguments.end(), {"--fidelity", fidelity});
    CHECK(value(test::json_of(arguments)["step_time"]) ==
          Approx(value(planned["step_time"])).epsilon(1e-9));
  }
  check_failed(test::rehearse({"simulate", "--chakra", prefix}), 1, "--cluster FILE");
  check_failed(test::rehearse({"export", job, "--chakra", prefix, "--scale", "gpu:2"}), 1,
               "a change of the job file");
  check_failed(test::rehearse({"export", cluster, "--chakra", prefix}), 1, "recording");
}

TEST_CASE("export: what Chakra traces cannot hold is refused") {
  const std::string prefix = test::scratch_folder() / "fed";
  check_failed(test::rehearse(
                   {"export", test::kExample, "--chakra", prefix, "--input-pipeline", "workers=4"}),
               1, "the same without input workers");
  check_failed(test::rehearse({"export", test::kExample}), 2, "--chakra");
}

}  // namespace
}  // namespace rehearse
