#include "models/compute/memory_law.h"

#include <algorithm>
#include <cmath>

namespace rehearse::compute {
namespace {

/// Bounds of cache use: up to `held` every row stays, from `lost` on none does.
struct Bounds {
  double held, lost;
};
constexpr Bounds kNorm = {0.3, 1.2}, kSoftmax = {0.6, 1.6};
/// Longer rows are read from memory again by softmax.
constexpr double kOnePass = 1024;
/// The threads of a block of a norm: 32 × 4.
constexpr double kNormThreads = 128;

double threads_per_multiprocessor(const DeviceFacts& facts) {
  if (facts.architecture.starts_with("turing")) return 1024;
  if (facts.architecture.starts_with("ampere_ga102") || facts.architecture.starts_with("ada"))
    return 1536;
  return 2048;
}

/// Elements that a thread loads at once: 16 bytes.
double vector_of(const RowKernel& kernel) { return 16 / kernel.element; }

/// The share of the passes after the first that misses the cache.
double miss(const DeviceFacts& facts, const RowKernel& kernel, double threads, double cache,
            Bounds bounds) {
  if (!facts.l2 || !(kernel.width > 0)) return 1;
  const double resident =
      facts.multiprocessors * std::max(1.0, threads_per_multiprocessor(facts) / threads);
  const double rows = std::min(resident, kernel.bytes / (2 * kernel.element * kernel.width));
  const double share = rows * kernel.width * kernel.element / (cache * facts.l2->b());
  return std::clamp((share - bounds.held) / (bounds.lost - bounds.held), 0.0, 1.0);
}

/// A block's sweeps over its row. The last one is partly idle; other blocks do not hide the share
/// `cost` of that.
double sweeps(const RowKernel& kernel, double threads, double cost) {
  if (!(kernel.width > 0)) return 1;
  const double whole = kernel.width / (threads * vector_of(kernel));
  return 1 + cost * (std::ceil(whole) / whole - 1);
}

/// The threads of a block of softmax: as PyTorch chooses, the least power of two that is at least
/// half of min(width / vector, 1024).
double softmax_threads(const RowKernel& kernel) {
  const double most = std::min(kernel.width / vector_of(kernel), 1024.0);
  double threads = 32;
  while (threads < most / 2) threads *= 2;
  return threads;
}

}  // namespace

double norm_passes(const DeviceFacts& facts, const MemoryConstants& constants,
                   const RowKernel& kernel) {
  return (1 + 0.5 * miss(facts, kernel, kNormThreads, constants.norm_cache, kNorm)) *
         sweeps(kernel, kNormThreads, constants.norm_sweep);
}

double softmax_passes(const DeviceFacts& facts, const MemoryConstants& constants,
                      const RowKernel& kernel) {
  if (kernel.width > 0 && kernel.width <= kOnePass) return 1;
  const double threads = softmax_threads(kernel);
  return (1 + miss(facts, kernel, threads, constants.softmax_cache, kSoftmax)) *
         sweeps(kernel, threads, constants.softmax_sweep);
}

}  // namespace rehearse::compute
