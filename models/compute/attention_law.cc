#include "models/compute/attention_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

constexpr double kBlock = 128;           // queries, and keys of a tile
constexpr double kLeastBlock = 16;       // queries of an instruction
constexpr double kFew = 64;              // queries up to which kernels divide the keys
constexpr double kDivided = 1024;        // keys of a part are √(keys · this) at least
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
  const bool asynchronous =
      facts.architecture.starts_with("hopper") || facts.architecture.starts_with("blackwell");
  if (!kernels && !asynchronous) kernels = AttentionKernels::kFlashAttention2;
  if (kernels) return constants.families[static_cast<std::size_t>(*kernels)];
  double factor = 1;
  for (const AttentionFamily& f : constants.families)
    factor *= std::pow(f.factor, 1. / kAttentionFamilies);
  return {factor,
          constants.families[static_cast<std::size_t>(AttentionKernels::kAsynchronous)].start};
}

double attention_time(const DeviceFacts& facts, const AttentionConstants& constants,
                      const AttentionFamily& family, Arithmetic arithmetic, double sustained,
                      const workload::Op& op) {
  const double peak = facts.peak(arithmetic).flop_per_s();
  const double clock =
      facts.boost_hz ? *facts.boost_hz : peak / (facts.multiprocessors * kPerClock);
  const double rows = std::clamp(whole(op.m, kLeastBlock), kLeastBlock, kBlock);
  const double blocks = op.batch * std::ceil(std::max(op.m, 1.0) / rows);
  const double most = whole(std::max(op.n, 1.0), kBlock);
  const double keys = op.causal ? std::min(most, 0.5 * (most + rows)) : most;
  const double key = family.factor * (4 * rows * head_of_kernel(op.k) * facts.multiprocessors *
                                          clock / (constants.share * sustained) +
                                      constants.exponentials * rows / kExponentialRate);
  double parts = 1;
  if (op.m <= kFew)
    parts =
        std::clamp(std::sqrt(most / kDivided), 1.0, std::max(1.0, facts.multiprocessors / blocks));
  const double all = blocks * (keys * key + constants.fixed) / facts.multiprocessors;
  const double longest = most / parts * key + constants.fixed;
  return (family.start * kClock + op.effort * (all + constants.tail * longest)) / clock;
}

}  // namespace rehearse::compute
