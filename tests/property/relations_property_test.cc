// Relations between two predictions that hold whatever the truth is: more bytes never take less
// time, a faster network, a shorter latency and a faster device never take more, and sharding
// states never takes more memory. A failure prints the seed.
#include <cmath>

#include <catch2/catch.hpp>

#include "models/comm/transfer.h"
#include "models/compute/op_cost.h"
#include "models/memory/memory.h"
#include "tests/support/laid_out.h"
#include "tests/support/random.h"
#include "tests/support/tiny_models.h"

namespace rehearse {
namespace {

using test::between;

constexpr int kPairs = 1000;

double within(test::Random& random, double least, double most) {
  return least * std::pow(most / least, std::uniform_real_distribution<double>(0, 1)(random));
}

const comm::Calibrated& some_calibration(test::Random& random) {
  static const auto all = [] {
    std::vector<comm::Calibrated> found;
    for (const char* device : {"a100_pcie_80", "a100_sxm4_80", "b200_sxm_180", "h100_pcie_80",
                               "h100_sxm5_80", "h200_sxm_141", "l40s", "v100_sxm2_16"})
      found.push_back(*comm::calibration_for(device));
    return found;
  }();
  return all[random() % all.size()];
}

comm::Group some_group(test::Random& random) {
  using Kind = CollectiveKind;
  constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kAllGather, Kind::kReduceScatter,
                             Kind::kAllToAll,  Kind::kBroadcast, Kind::kReduce,
                             Kind::kSendRecv};
  comm::Group group{.kind = kKinds[random() % std::size(kKinds)], .ranks = between(random, 2, 8)};
  if (between(random, 0, 1) == 0) return group;
  group.nodes = between(random, 2, 64);
  group.ranks = group.nodes * (1U << between(random, 0, 3));
  const double nics = between(random, 1, 8);
  group.network = comm::Network{.kind = static_cast<comm::NetworkKind>(between(random, 0, 4)),
                                .node_rate = ByteRate::gb_per_s(within(random, 1, 400)),
                                .latency = Seconds::us(within(random, 1, 40)),
                                .nics = nics,
                                .message_cost = Seconds::us(between(random, 0, 11))};
  return group;
}

TEST_CASE("a larger buffer never takes less time") {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < kPairs; ++seed) {
    test::Random random(seed);
    const comm::Calibrated& calibrated = some_calibration(random);
    const auto cost = comm::CollectiveCost::resolve(calibrated, some_group(random));
    if (!cost) continue;  // not measured
    // Pairs anywhere, and pairs next to a choice that changes: a power of two or 1.5 of it.
    double size = within(random, 1, 4e9);
    if (between(random, 0, 1) == 0) size = std::exp2(between(random, 4, 31)) * 0.999;
    const double more = size * within(random, 1.0001, between(random, 0, 1) == 0 ? 1.01 : 4);
    INFO("seed " << seed << ", " << calibrated.calibration.device << ", " << size << " and " << more
                 << " B");
    CHECK(cost->seconds(more) >= cost->seconds(size) * (1 - 1e-9));
    ++compared;
  }
}

TEST_CASE("a faster device never takes longer, and FP16 nowhere longer than BF16") {
  for (int seed = 1; seed <= kPairs; ++seed) {
    test::Random random(seed);
    const std::vector<cluster::Gpu>& gpus = cluster::gpus();
    const compute::DeviceFacts facts = compute::facts_of(gpus[random() % gpus.size()]);
    compute::DeviceFacts faster = facts;
    const double factor = within(random, 1, 3);
    for (auto& peak : faster.peaks)
      if (peak) *peak = *peak * factor;
    faster.memory_rate = faster.memory_rate * factor;
    if (faster.power_limit) *faster.power_limit = *faster.power_limit * factor;
    workload::Op op{.name = "",
                    .kind = workload::OpKind::kGemm,
                    .dtype = workload::Dtype::kBf16,
                    .batch = 1.0 * between(random, 1, 8),
                    .m = 8.0 * between(random, 1, 1024),
                    .n = 8.0 * between(random, 1, 1024),
                    .k = 8.0 * between(random, 1, 1024)};
    INFO("seed " << seed << ", " << facts.name);
    const auto slow = compute::OpCost::on(facts, {}), fast = compute::OpCost::on(faster, {});
    REQUIRE((slow && fast));
    const Seconds time = slow->predicted(op).value;
    CHECK(fast->predicted(op).value.s() <= time.s() * (1 + 1e-9));
    op.dtype = workload::Dtype::kFp16;
    CHECK(slow->predicted(op).value.s() <= time.s() * (1 + 1e-9));
  }
}

TEST_CASE("an MI100 multiplies FP16 twice as fast as BF16") {
  // 184.6 against 92.3 TFLOP/s; a product of 8192³ waits for nothing else.
  const compute::OpCost cost = *compute::OpCost::on("mi100", {});
  workload::Op op{.name = "",
                  .kind = workload::OpKind::kGemm,
                  .dtype = workload::Dtype::kBf16,
                  .m = 8192,
                  .n = 8192,
                  .k = 8192};
  const Seconds bf16 = cost.predicted(op).value;
  op.dtype = workload::Dtype::kFp16;
  CHECK(bf16 / cost.predicted(op).value == Approx(2).epsilon(0.1));
}

TEST_CASE("a further stage of ZeRO never takes more memory, and one rank alone gains nothing") {
  for (int seed = 1; seed <= kPairs; ++seed) {
    test::Random random(seed);
    const workload::Workload model = test::tiny_gpt({.hidden = 512.0 * between(random, 1, 8),
                                                     .heads = 8,
                                                     .sequence = 128.0 * between(random, 1, 8),
                                                     .vocabulary = 32000,
                                                     .layers = 4 * between(random, 1, 4)});
    strategies::Plan plan{.data = 1U << between(random, 0, 6),
                          .tensor = 1U << between(random, 0, 3)};
    const strategies::Training training{
        .global_batch = 64.0 * plan.data,
        .microbatch = 1.0 * (1U << between(random, 0, 2)),
        .dtype = between(random, 0, 1) == 0 ? workload::Dtype::kBf16 : workload::Dtype::kFp16};
    const memory::Device device = memory::device_of(**cluster::find_gpu("a100_sxm4_80"));
    const auto total = [&](std::uint32_t zero) {
      plan.zero = zero;
      const workload::Layout layout = test::laid_out(model, training, plan);
      return memory::memory_of(layout, layout.stages.front(), device).peak.value.b();
    };
    INFO("seed " << seed << ", data " << plan.data << ", tensor " << plan.tensor);
    const double none = total(0), optimizer = total(1), gradients = total(2);
    CHECK(optimizer <= none * (1 + 1e-9));
    // A bucket of gradients waits to be scattered, and the allocator's reserve for it.
    CHECK(gradients <= optimizer + 1.06 * plan.bucket.b());
    if (plan.data == 1) CHECK(gradients == Approx(none).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace rehearse
