// What holds of any op on any device.
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "models/compute/op_cost.h"

namespace rehearse::compute {
namespace {

using workload::Op;
using workload::OpKind;

constexpr const char* kDevices[] = {"a100_sxm4_80", "h100_sxm5_80", "l40s", "v100_pcie_32",
                                    "mi300x",       "t4",           "l4"};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  /// A power of two times up to 1.9, from 2^least to 2^most.
  double extent(double least, double most) {
    std::uniform_real_distribution<double> power(least, most);
    return std::floor(std::exp2(power(engine_)));
  }
  Op product() {
    return {.name = "",
            .kind = OpKind::kGemm,
            .dtype = std::uniform_int_distribution<int>(0, 1)(engine_) ? workload::Dtype::kBf16
                                                                       : workload::Dtype::kFp32,
            .batch = extent(0, 6),
            .m = extent(0, 13),
            .n = extent(3, 13),
            .k = extent(3, 13)};
  }

 private:
  std::mt19937 engine_;
};

TEST_CASE(
    "a product of aligned rows twice as large is never faster, except by the choice of a tile") {
  Random random(7);
  for (const char* device : kDevices) {
    const OpCost cost = *OpCost::on(device, {});
    for (int i = 0; i < 300; ++i) {
      Op op = random.product();
      for (double* extent : {&op.m, &op.n, &op.k}) *extent = std::ceil(*extent / 8) * 8;
      const double before = cost.predicted(op).value.s();
      for (const auto extent : {workload::Extent::kBatch, workload::Extent::kM,
                                workload::Extent::kN, workload::Extent::kK}) {
        Op larger = op;
        workload::divide(larger, extent, 0.5);
        // A batch may run at another rate than one product.
        const double slack = op.batch == 1 && extent == workload::Extent::kBatch ? 0.7 : 0.999;
        INFO(device << " " << op.batch << " " << op.m << " " << op.n << " " << op.k);
        CHECK(cost.predicted(larger).value.s() >= slack * before);
      }
    }
  }
}

TEST_CASE("n products in a batch take no longer than n times one") {
  Random random(11);
  for (const char* device : kDevices) {
    const OpCost cost = *OpCost::on(device, {});
    for (int i = 0; i < 200; ++i) {
      Op op = random.product();
      op.batch = 2;
      Op many = op;
      many.batch = 16;
      CHECK(cost.predicted(many).value.s() <= 8.001 * cost.predicted(op).value.s());
    }
  }
}

TEST_CASE("dividing an op over n ranks gains at most a factor of n, except by cache effects") {
  Random random(13);
  for (const char* device : kDevices) {
    const OpCost cost = *OpCost::on(device, {});
    for (int i = 0; i < 200; ++i) {
      const Op op = random.product();
      Op part = op;
      workload::divide(part, workload::Extent::kM, 4);
      // Long rows cost both alike.
      CHECK(4.001 * cost.predicted(part).value.s() >= cost.predicted(op).value.s());
    }
  }
}

TEST_CASE("a slower memory and a slower device never make an op faster") {
  Random random(17);
  for (const char* name : kDevices) {
    const DeviceFacts facts = facts_of(**cluster::find_gpu(name));
    DeviceFacts slower = facts;
    slower.memory_rate = facts.memory_rate * 0.5;
    for (auto& peak : slower.peaks)
      if (peak) peak = *peak * 0.5;
    const OpCost fast = *OpCost::on(facts, {}), slow = *OpCost::on(slower, {});
    for (int i = 0; i < 200; ++i) {
      const Op op = random.product();
      CHECK(slow.predicted(op).value >= fast.predicted(op).value);
    }
  }
}

}  // namespace
}  // namespace rehearse::compute
