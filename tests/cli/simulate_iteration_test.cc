// simulate: an iteration of 12 layers on 512 ranks, from a Chakra trace as a user would have it.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/bench/iteration.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

/// [[0, 1], [2, 3]] for two groups of two.
std::string sets(std::uint32_t count, std::uint32_t size, std::uint32_t stride,
                 std::uint32_t step) {
  std::string text = "[";
  for (std::uint32_t group = 0; group < count; ++group) {
    text += group == 0 ? "[" : ", [";
    for (std::uint32_t member = 0; member < size; ++member)
      text += fmt::format("{}{}", member == 0 ? "" : ", ", group * stride + member * step);
    text += "]";
  }
  return text + "]";
}

TEST_CASE("12 layers on 512 ranks: folded, unfolded and as messages") {
  const bench::Iteration iteration{.layers = 12};
  const program::Program job = bench::make_job(iteration);
  const std::filesystem::path folder = test::scratch_folder();
  std::ofstream(folder / "job.et", std::ios::binary)
      << test::chakra_file(job.programs.front(), job.names, {"tp", "dp"});
  std::ofstream(folder / "groups.json")
      << fmt::format("{{\"tp\": {}, \"dp\": {}}}", sets(64, 8, 8, 1), sets(8, 64, 1, 8));
  std::ofstream(folder / "cluster.yaml")
      << "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 64, inter_node: {kind: "
         "switch, links: 8, rate: 50 GB/s, latency: 5 us}}\n";
  const auto step_s = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"simulate",
                                          "--chakra",
                                          folder / "job",
                                          "--comm-groups",
                                          folder / "groups.json",
                                          "--cluster",
                                          folder / "cluster.yaml",
                                          "--ranks",
                                          "512",
                                          "--format",
                                          "json",
                                          "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::document(test::rehearse(arguments))["step_time"]["value"].get<double>();
  };
  CHECK(step_s({"--fidelity", "closed"}) == step_s({"--fidelity", "closed", "--unfold"}));
  // Every rank does the same, on links of its own: nothing contends but the two collectives of a
  // rank. A run sends the phases that the closed form adds up, both for the rings and for the
  // algorithms that NCCL chooses, which are quicker here.
  const auto agrees = [&](const std::vector<std::string>& algorithm) {
    std::vector<std::string> closed = {"--fidelity", "closed"}, message = {"--fidelity", "message"};
    closed.insert(closed.end(), algorithm.begin(), algorithm.end());
    message.insert(message.end(), algorithm.begin(), algorithm.end());
    const double folded = step_s(closed), messages = step_s(message);
    CHECK(messages == Approx(folded).epsilon(1e-6));
    return messages;
  };
  CHECK(agrees({}) < agrees({"--algorithm", "ring"}));
}

}  // namespace
}  // namespace rehearse
