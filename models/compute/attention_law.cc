#include "models/compute/attention_law.h"

#include <algorithm>

namespace rehearse::compute {
namespace {

/// Of the rate of a product, with heads of 128 and many keys: FlashAttention-2 on A100 and L40S,
/// TensorRT-LLM on H100 and B200. FlashAttention-3 and FlashInfer get 0.85, FlashAttention-2 on
/// H100 0.45.
constexpr double kShare = 0.63;
constexpr double kHead = 128;
/// FLOPs per multiprocessor and clock: of A100, where the clock is not known.
constexpr double kPerClock = 2048;
constexpr double kExponentials = 1. / 64, kBlocks = 1. / 8;
constexpr double kBlock = 128;  // queries

}  // namespace

double head_of_kernel(double size) {
  for (const double held : {32, 64, 96, 128, 192, 256})
    if (size <= held) return held;
  return size;
}

double attention_time(const DeviceFacts& facts, Arithmetic arithmetic, double sustained,
                      const workload::Op& op) {
  const double per_clock = facts.boost_hz ? facts.peak(arithmetic).flop_per_s() /
                                                (facts.multiprocessors * *facts.boost_hz)
                                          : kPerClock;
  const double keys = std::max(op.n * (op.causal ? 0.5 : 1), 1.0), head = head_of_kernel(op.k);
  const double exponentials = per_clock * kExponentials;
  const double ends = per_clock * kBlocks;
  // One block on every multiprocessor; kernels divide the keys of a few queries.
  const double least =
      kBlock * facts.multiprocessors * (keys * std::min(op.m / kBlock, 1.0) + ends);
  const double flops = 4 * std::max(op.batch * op.m * (keys + ends), least) * head * op.effort;
  return flops * (1 + exponentials / head) / (1 + exponentials / kHead) / (kShare * sustained);
}

}  // namespace rehearse::compute
