// Work in parts that take turns, and recomputation as memory needs it.
#include <catch2/catch.hpp>

#include "models/job/lower.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/devices.h"
#include "strategies/step/fit_recompute.h"
#include "strategies/step/predict.h"
#include "strategies/transforms.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::laid_out;
using test::tiny_gpt;
using workload::Axis;
using workload::Issue;
using workload::Layout;
using workload::Op;

const workload::Layer& block_of(const Layout& layout) {
  return layout.stages[0].chunks[0].layers[1];
}

/// "up" for an op, "[tokens to experts" for a communication that waits, "~2 tokens from experts" for
/// one that two ops overlap.
std::vector<std::string> words_of(const std::vector<Op>& ops) {
  std::vector<std::string> words;
  for (const Op& op : ops) {
    std::string word(op.name);
    if (op.communicates())
      word =
          op.issue == Issue::kInline ? "[" + word : "~" + std::to_string(op.alongside) + " " + word;
    words.push_back(std::move(word));
  }
  return words;
}

TEST_CASE("an exchange in parts: one is sent while the experts compute another") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Training training{.global_batch = 4};
  const Layout whole = laid_out(w, training, {.data = 4, .expert = 4}),
               parts = laid_out(w, training, {.data = 4, .expert = 4, .exchange_parts = 2});
  CHECK(words_of(block_of(parts).forward) ==
        std::vector<std::string>{
            "norm", "qkv", "attention", "projection", "add",  //
            "[tokens to experts",                             // part 1
            "~3 tokens to experts", "up", "gelu", "down",     // 2, while 1 is computed
            "~3 tokens from experts", "up", "gelu", "down",   // 1, while 2 is computed
            "[tokens from experts", "add"});                  // 2
  CHECK(test::flops_over_ranks(parts) == test::flops_over_ranks(whole));
  CHECK(collective_bytes(parts, Axis::kExpert) == collective_bytes(whole, Axis::kExpert));
}

// Three parts of exchange, experts, exchange: turn t has part t of the exchange, t − 1 of the
// experts and t − 2 of the return.
TEST_CASE("a turn may send two parts while one is computed") {
  const workload::Workload w = tiny_gpt({.experts = 8});
  const Layout parts =
      laid_out(w, {.global_batch = 4}, {.data = 4, .expert = 4, .exchange_parts = 3});
  std::vector<std::string> sent;
  for (const std::string& word : words_of(block_of(parts).forward))
    if (word.front() == '[' || word.front() == '~') sent.push_back(word);
  CHECK(sent == std::vector<std::string>{"[tokens to experts", "~3 tokens to experts",
                                         "~1 tokens from experts", "~3 tokens to experts",
                                         "~3 tokens from experts", "[tokens from experts"});
}

TEST_CASE("halves of a microbatch: sums over tensor ranks run while the other half computes") {
  const workload::Workload w = tiny_gpt({});
  const Training training{.global_batch = 2, .microbatch = 2};
  const Layout whole = laid_out(w, training, {.tensor = 2}),
               parts = laid_out(w, training, {.tensor = 2, .microbatch_parts = 2});
  const std::vector<Op>& forward = block_of(parts).forward;
  CHECK(words_of(forward) ==
        std::vector<std::string>{"norm",
                                 "qkv",
                                 "attention",
                                 "projection",  // first half
                                 "~4 sum partial results",
                                 "norm",
                                 "qkv",
                                 "attention",
                                 "projection",  // second half
                                 "~4 sum partial results",
                                 "add",
                                 "up",
                                 "gelu",
                                 "down",  // first half
                                 "~4 sum partial results",
                                 "add",
                                 "up",
                                 "gelu",
                                 "down",  // second half
                                 "add",
                                 "add",
                                 "~1 sum partial results"});  // while the next layer computes
  // The sums at the end of the layer before run during the first half.
  CHECK(forward.front().alongside == 4);
  CHECK(forward[1].m == block_of(whole).forward[1].m / 2);
  CHECK(test::flops_over_ranks(parts) == test::flops_over_ranks(whole));
  CHECK(collective_bytes(parts, Axis::kTensor) == collective_bytes(whole, Axis::kTensor));
  CHECK(test::error_of(w, training, {.tensor = 2, .microbatch_parts = 3})
            .find("microbatch_parts 3 does not divide microbatch 2") != std::string::npos);
}

cluster::Cluster cluster_of(std::string_view device, std::string_view rate) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: {}, devices_per_node: 4, nodes: 1, intra_node: {{kind: "
                  "nvswitch, rate: {}, latency: 2 us}}}}\n",
                  device, rate),
      "parts");
  REQUIRE(cluster);
  return *cluster;
}

step::Spec spec_of(const workload::Workload& workload, const Training& training, const Plan& plan) {
  step::Conditions conditions =
      step::conditions_for(**cluster::find_gpu("a100_sxm4_80"), workload::Elementwise::kEager);
  conditions.host_per_kernel = conditions.fixed = Seconds::s(0);
  conditions.host = {};
  conditions.overlap_penalty = 0;
  return {.workload = workload, .training = training, .plan = plan, .conditions = conditions};
}

// With networks from fast to slow: never longer than without parts by more than the smaller kernels
// take, and never shorter than the longer of computing and sending.
TEST_CASE("parts hide communication, and smaller kernels take longer") {
  const workload::Workload w =
      tiny_gpt({.hidden = 2048, .heads = 16, .sequence = 1024, .layers = 4, .experts = 8});
  const Training training{.global_batch = 16, .microbatch = 4};
  const auto seconds = [&](std::uint32_t parts, const char* rate) {
    const auto step =
        step::predict(spec_of(w, training, {.data = 4, .expert = 4, .exchange_parts = parts}),
                      cluster_of("a100_sxm4_80", rate), {.fidelity = step::Fidelity::kClosed});
    INFO((step ? "" : to_string(step.error())));
    REQUIRE(step);
    return step->time.value.s();
  };
  const double computing = seconds(1, "100 TB/s");
  CHECK(seconds(8, "100 TB/s") > computing);
  for (const char* rate : {"20 GB/s", "60 GB/s"}) {
    const double whole = seconds(1, rate), half = seconds(2, rate);
    CHECK(half < whole);
    CHECK(half > std::max(computing, whole - computing));
  }
}

TEST_CASE("as needed: each stage recomputes the fewest layers with which it fits") {
  const workload::Workload w =
      tiny_gpt({.hidden = 4096, .heads = 32, .sequence = 2048, .vocabulary = 8000, .layers = 16});
  const cluster::Cluster cluster = cluster_of("a100_sxm4_40", "300 GB/s");
  Training training{.global_batch = 64, .microbatch = 16, .recompute = Recompute::kAsNeeded};
  const Plan plan{.pipeline = 4};
  const auto layout = step::lay_out_on(cluster, w, training, plan);
  REQUIRE(layout);
  std::vector<std::uint32_t> recomputed;
  for (const workload::Stage& stage : layout->stages) {
    recomputed.push_back(0);
    for (const workload::Layer& layer : stage.chunks[0].layers)
      if (!layer.recompute.empty()) recomputed.back() += layer.count;
  }
  // 1F1B holds 4, 3, 2 and 1 microbatches.
  CHECK(std::is_sorted(recomputed.rbegin(), recomputed.rend()));
  CHECK(recomputed.front() > 0);
  CHECK(recomputed.back() == 0);
  const auto memories = step::memory_on(*layout, cluster);
  REQUIRE(memories);
  for (const memory::StageMemory& memory : *memories) CHECK(memory.fit != memory::Fit::kDoesNotFit);
  // One layer less does not fit.
  training.recompute = Recompute::kNone;
  const Layout none = laid_out(w, training, plan);
  for (std::size_t s = 0; s < recomputed.size(); ++s) {
    if (recomputed[s] == 0) continue;
    Layout less = *layout;
    for (workload::Layer& layer : less.stages[s].chunks[0].layers)
      if (!layer.recompute.empty()) {
        if (--layer.count == 0)
          layer = none.stages[s].chunks[0].layers.back();
        else
          less.stages[s].chunks[0].layers.push_back(none.stages[s].chunks[0].layers.back());
        less.stages[s].chunks[0].layers.back().count = 1;
        break;
      }
    CHECK((*step::memory_on(less, cluster))[s].fit == memory::Fit::kDoesNotFit);
  }
}

}  // namespace
}  // namespace rehearse::strategies
