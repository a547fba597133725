// Which op of one run is which of another, and what changed.
#include <catch2/catch.hpp>

#include "profiler/compare/compare_runs.h"
#include "profiler/compare/match.h"
#include "tests/support/compare_random.h"

namespace rehearse::compare {
namespace {

struct Op {
  std::string name;
  double seconds;
  std::string from = {};
  std::string shapes = {};
  std::string grid = {};
  double place = 0;
  double calls = 1;
  OpKind kind = OpKind::kKernel;
};

/// Twenty steps, each the sum of its ops, with noise of half a percent.
Run make_run(const std::vector<Op>& ops, std::uint64_t seed = 1) {
  constexpr std::size_t kSteps = 20;
  Random random(seed);
  Run run{.source = "run",
          .ranks = 1,
          .devices = {"GPU"},
          .steps_from = "step marks",
          .step_time = std::vector<double>(kSteps)};
  for (const Op& op : ops) {
    OpSlot slot{.kind = op.kind,
                .name = op.name,
                .from = op.from,
                .layer = {},
                .shapes = op.shapes,
                .grid = op.grid,
                .place = op.place,
                .calls = op.calls,
                .times = {}};
    for (std::size_t s = 0; s < kSteps; ++s) {
      slot.times.push_back(op.seconds * (1 + 0.005 * random.normal()));
      run.step_time[s] += slot.times.back();
    }
    run.slots.push_back(std::move(slot));
  }
  return run;
}

const OpChange* find(const RunComparison& comparison, const std::string& name) {
  for (const OpChange& op : comparison.ops)
    if (op.name == name) return &op;
  return nullptr;
}

TEST_CASE("names that differ only in a version are similar") {
  CHECK(likeness("gemm_128x128", "gemm_128x128") == 1);
  CHECK(likeness("ampere_sgemm_128x64_tn", "ampere_sgemm_64x64_tn") > 0.7);
  CHECK(likeness("softmax_forward", "nchwToNhwc") < 0.3);
  CHECK(likeness("", "a") == 0);
  CHECK(likeness("night", "nacht") == Approx(0.25));  // "ht" of four and four
}

TEST_CASE("the order of ops is irrelevant") {
  const Run b = make_run({{"a", 0.01, "x"}, {"b", 0.02, "y"}, {"c", 0.03, "z"}});
  const Run c = make_run({{"c", 0.03, "z"}, {"a", 0.01, "x"}, {"b", 0.02, "y"}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  CHECK(compared->matched_share == Approx(1));
  REQUIRE(compared->ops.size() == 3);
  for (const OpChange& op : compared->ops) {
    CHECK_FALSE(op.significant);
    CHECK(op.renamed.empty());
  }
}

TEST_CASE("a renamed kernel is recognised by the operator that launched it") {
  const Run b = make_run({{"gemm_v1", 0.02, "aten::mm", "[8]"}, {"relu", 0.01, "aten::relu"}});
  const Run c =
      make_run({{"cutlass_tensorop", 0.03, "aten::mm", "[8]"}, {"relu", 0.01, "aten::relu"}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  REQUIRE(compared->ops.size() == 2);
  const OpChange& gemm = compared->ops.front();  // what changed most
  CHECK(gemm.name == "gemm_v1");
  CHECK(gemm.renamed == std::vector<std::string>{"cutlass_tensorop"});
  CHECK(gemm.effect.change == Approx(0.5).epsilon(0.02));
  CHECK(gemm.significant);
  CHECK_FALSE(find(*compared, "relu")->significant);
}

TEST_CASE("without operators, a renamed kernel is known by its launch shape and place") {
  const Run b = make_run({{.name = "gemm_a", .seconds = 0.02, .grid = "8x8", .place = 0.1},
                          {.name = "gemm_b", .seconds = 0.02, .grid = "8x8", .place = 0.8},
                          {.name = "relu", .seconds = 0.01, .grid = "4x1", .place = 0.5}});
  const Run c = make_run({{.name = "mma_q", .seconds = 0.02, .grid = "8x8", .place = 0.8},
                          {.name = "mma_p", .seconds = 0.02, .grid = "8x8", .place = 0.1},
                          {.name = "relu", .seconds = 0.01, .grid = "4x1", .place = 0.5}},
                         2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  CHECK(find(*compared, "gemm_a")->renamed == std::vector<std::string>{"mma_p"});
  CHECK(find(*compared, "gemm_b")->renamed == std::vector<std::string>{"mma_q"});
}

TEST_CASE("with names alone, the nearest name at the same place is the same op") {
  const Run b = make_run({{.name = "ampere_sgemm_128x64_tn", .seconds = 0.02, .place = 0.1},
                          {.name = "vectorized_elementwise", .seconds = 0.01, .place = 0.6}});
  const Run c = make_run({{.name = "vectorized_elementwise_kernel", .seconds = 0.01, .place = 0.6},
                          {.name = "ampere_sgemm_64x64_tn", .seconds = 0.02, .place = 0.1}},
                         2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  CHECK(compared->matched_share == Approx(1));
  CHECK(find(*compared, "ampere_sgemm_128x64_tn")->renamed ==
        std::vector<std::string>{"ampere_sgemm_64x64_tn"});
}

TEST_CASE("one kernel for two operators, renamed for one of them") {
  const Run b = make_run({{"gemm", 0.02, "linear", "[1]"}, {"gemm", 0.03, "attention", "[2]"}});
  const Run c =
      make_run({{"gemm_new", 0.02, "linear", "[1]"}, {"gemm", 0.03, "attention", "[2]"}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  REQUIRE(compared->ops.size() == 1);
  CHECK(compared->ops[0].name == "gemm");
  CHECK(compared->ops[0].renamed == std::vector<std::string>{"gemm_new"});
  CHECK(compared->ops[0].effect.change == Approx(0).margin(0.01));
}

TEST_CASE("of several kernels of one operator, the one with the same duration is paired") {
  const Run b = make_run(
      {{"main_v1", 0.03, "conv", "[1]", "", 0.5}, {"helper_v1", 0.0005, "conv", "[1]", "", 0.5}});
  const Run c = make_run(
      {{"offsets", 0.0005, "conv", "[1]", "", 0.5}, {"wgrad", 0.03, "conv", "[1]", "", 0.5}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  CHECK(find(*compared, "main_v1")->renamed == std::vector<std::string>{"wgrad"});
}

TEST_CASE("ops that are gone and new ops are reported") {
  const Run b = make_run({{"gemm", 0.1, "mm"}, {"copy_a", 0.01, "copy"}});
  const Run c = make_run({{"gemm", 0.1, "mm"}, {"softmax", 0.01, "attention"}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  const OpChange *gone = find(*compared, "copy_a"), *added = find(*compared, "softmax");
  REQUIRE(gone);
  REQUIRE(added);
  CHECK(gone->significant);
  CHECK(gone->effect.change == Approx(-1));
  CHECK(added->significant);
  CHECK(added->effect.baseline == 0);
  CHECK(compared->matched_share == Approx(0.1 / 0.11).epsilon(0.01));
}

TEST_CASE("runs of different jobs, ranks or devices are refused, with the reason") {
  const Run b = make_run({{"gemm", 0.1, "mm"}, {"relu", 0.02, "relu"}});
  Run other = make_run({{"winograd", 0.1, "conv"}, {"relu", 0.02, "relu"}}, 2);
  const auto refused = compare_runs(b, other, {});
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error()).find("is of another job than run: only 17 % of the op time") !=
        std::string::npos);
  other = b;
  other.devices = {"Other GPU"};
  const auto device = compare_runs(b, other, {});
  REQUIRE_FALSE(device);
  CHECK(to_string(device.error()).find("ran on Other GPU, run on GPU") != std::string::npos);
  other = b;
  other.ranks = 4;
  const auto ranks = compare_runs(b, other, {});
  REQUIRE_FALSE(ranks);
  CHECK(to_string(ranks.error()).find("has 4 ranks, run has 1") != std::string::npos);
}

TEST_CASE("an op too small for the step is compared and never reported as changed") {
  const Run b = make_run({{"gemm", 0.1, "mm"}, {"tiny", 0.00001, "x"}});
  const Run c = make_run({{"gemm", 0.1, "mm"}, {"tiny", 0.00005, "x"}}, 2);
  const auto compared = compare_runs(b, c, {});
  REQUIRE(compared);
  CHECK(find(*compared, "tiny")->effect.change == Approx(4).epsilon(0.05));
  CHECK_FALSE(find(*compared, "tiny")->significant);
}

}  // namespace
}  // namespace rehearse::compare
