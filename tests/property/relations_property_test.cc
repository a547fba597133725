// Relations between two predictions that hold whatever the truth is: a faster device never takes more
// time, and sharding states never takes more memory. A failure prints the seed.
#include <cmath>

#include <catch2/catch.hpp>

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

TEST_CASE("a further stage of ZeRO never takes more memory on two or more data ranks") {
  for (int seed = 1; seed <= kPairs; ++seed) {
    test::Random random(seed);
    const workload::Workload model = test::tiny_gpt({.hidden = 512.0 * between(random, 1, 8),
                                                     .heads = 8,
                                                     .sequence = 128.0 * between(random, 1, 8),
                                                     .vocabulary = 32000,
                                                     .layers = 4 * between(random, 1, 4)});
    strategies::Plan plan{.data = 1U << between(random, 1, 6),
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
  }
}

}  // namespace
}  // namespace rehearse
