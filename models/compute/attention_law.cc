#include "models/compute/attention_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

constexpr double kBlock = 128;           // queries, and keys of a tile
constexpr double kLeastBlock = 16;       // queries of an instruction
constexpr double kFew = 64;              // queries up to which kernels divide the keys
constexpr double kBlocksAtOnce = 2;      // of a multiprocessor, up to which they do
constexpr double kExponentialRate = 16;  // per multiprocessor and clock
constexpr double kClock = 1.7e9;         // Hz, to which starts refer
/// FLOPs per multiprocessor and clock: of A100, where the clock is not known.
constexpr double kPerClock = 2048;

double whole(double x, double of) { return std::ceil(x / of) * of; }

}  // namespace

double head_of_kernel(double size) {
  for (const double held : {32, 64, 96, 128, 192, 256})
    if (size <= held) return held;
  return size;
}

AttentionFamily family_of(const DeviceFacts& facts, const AttentionConstants& constants,
                          std::optional<AttentionKernels> kernels) {
  const bool blackwell = facts.architecture.starts_with("blackwell");
  AttentionFamily asynchronous =
      blackwell ? constants.blackwell
                : constants.families[static_cast<std::size_t>(AttentionKernels::kAsynchronous)];
  if (!kernels && !blackwell && !facts.architecture.starts_with("hopper"))
    kernels = AttentionKernels::kFlashAttention2;
  if (kernels == AttentionKernels::kAsynchronous) return asynchronous;
  if (kernels) return constants.families[static_cast<std::size_t>(*kernels)];
  for (const AttentionKernels other :
       {AttentionKernels::kFlashAttention2, AttentionKernels::kTensorRt})
    asynchronous.factor *= constants.families[static_cast<std::size_t>(other)].factor;
  asynchronous.factor = std::cbrt(asynchronous.factor);
  return asynchronous;
}

double attention_time(const DeviceFacts& facts, const AttentionConstants& constants,
                      const AttentionFamily& family, double sustained, double moved,
                      const workload::Op& op) {
  const double peak = peak_of(facts, op.dtype).flop_per_s();
  const double clock =
      facts.boost_hz ? *facts.boost_hz : peak / (facts.multiprocessors * kPerClock);
  const double rows = std::clamp(whole(op.m, kLeastBlock), kLeastBlock, kBlock);
  const double blocks = op.batch * std::ceil(std::max(op.m, 1.0) / rows);
  const double most = whole(std::max(op.n, 1.0), kBlock);
  const double key = op.effort * family.factor *
                     (4 * rows * head_of_kernel(op.k) * facts.multiprocessors * clock /
                          (constants.share * sustained) +
                      constants.exponentials * rows / kExponentialRate) /
                     clock;
  const double q = constants.overlap;
  const auto together = [&](double computing) {
    return std::pow(std::pow(computing, q) + std::pow(moved, q), 1 / q);
  };
  const double paced = kClock / clock;
  if (op.causal || op.m > kFew) {
    const double keys = op.causal ? std::min(most, 0.5 * (most + rows)) : most;
    const double fixed = op.effort * constants.fixed / clock;
    const double all = blocks * (keys * key + fixed) / facts.multiprocessors;
    return family.start * paced + together(all + family.tail * (most * key + fixed));
  }
  const Decoding& d = family.decoding;
  // Kernels without asynchronous loads divide keys only where heads are grouped.
  const double parts =
      d.key > 0 && op.m <= 1
          ? 1
          : std::clamp(kBlocksAtOnce * facts.multiprocessors / blocks, 1.0, most / kBlock);
  const double all = blocks * (most * key + d.block) / facts.multiprocessors;
  const double chain = most / parts * std::max(key, d.key) + d.block;
  return family.start * paced + together(std::pow(std::pow(all, q) + std::pow(chain, q), 1 / q)) +
         (parts > 1 ? (d.merge + parts * d.part) * paced : 0);
}

}  // namespace rehearse::compute
