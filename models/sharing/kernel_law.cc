#include "models/sharing/kernel_law.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "models/sharing/tenants.h"

namespace rehearse::sharing {
namespace {

// For compute capabilities 8.0 to 10.0, which have MIG: CUDA C++ Programming Guide, technical
// specifications per compute capability.
constexpr double kThreads = 2048, kBlocks = 32, kRegisters = 65536;
constexpr double kShared80 = 164 * 1024.0, kShared90 = 228 * 1024.0;

/// The number of concurrent blocks on a multiprocessor.
double resident(const KernelLaunch& launch, double shared_bytes) {
  double blocks = std::min(kBlocks, std::floor(kThreads / std::max(1.0, launch.threads_per_block)));
  const double registers = launch.registers_per_thread * launch.threads_per_block;
  if (registers > 0) blocks = std::min(blocks, std::floor(kRegisters / registers));
  if (launch.shared_bytes > 0)
    blocks = std::min(blocks, std::floor(shared_bytes / launch.shared_bytes));
  return std::max(1.0, blocks);
}

}  // namespace

KernelSlice kernel_slice(const cluster::MigDevice& device, std::uint32_t profile) {
  return {.multiprocessors_before = static_cast<double>(device.gpu->multiprocessors),
          .multiprocessors = static_cast<double>(cluster::multiprocessors_of(device, profile)),
          .memory = static_cast<double>(device.positions) / device.profile(profile).memory_slices,
          .shared_bytes = device.gpu->compute_capability == "8.0" ? kShared80 : kShared90};
}

bool computes(std::string_view kernel) {
  std::string lower(kernel);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 7> kWords = {"gemm", "conv",  "fmha",   "flash",
                                                      "xmma", "wgrad", "cutlass"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

KernelUse use_of(std::string_view kernel, const std::optional<KernelLaunch>& launch,
                 double multiprocessors) {
  const double share = launch ? std::min(1.0, std::max(1.0, launch->blocks) / multiprocessors) : 1;
  return computes(kernel) ? KernelUse{share, 0} : KernelUse{kDrawAll * share, share};
}

Slowdown slowdown_on(const KernelSlice& slice, std::string_view kernel, Seconds recorded,
                     const std::optional<KernelLaunch>& launch) {
  constexpr double kLatency = 2e-6;
  const double before = slice.multiprocessors_before, after = slice.multiprocessors;
  double load = before / after, waves = load, drawn = 1;
  if (launch) {
    const double blocks = std::max(1.0, launch->blocks);
    const double together = resident(*launch, slice.shared_bytes);
    load = std::ceil(blocks / after) / std::ceil(blocks / before);
    waves = std::ceil(blocks / (after * together)) / std::ceil(blocks / (before * together));
    drawn = std::min(1.0, blocks / before);
  }
  const double moving = std::max(1.0, drawn * slice.memory);
  const double value = computes(kernel) ? load : moving;
  const double part = recorded.s() > 0 ? std::max(0.0, 1 - kLatency / recorded.s()) : 0;
  const auto of_all = [part](double factor) { return 1 + part * (std::max(1.0, factor) - 1); };
  // A compute kernel may wait for memory, and a memory-bound kernel for arithmetic.
  return {of_all(value), of_all(std::min({value, waves, moving})),
          of_all(std::max({value, load, moving}))};
}

}  // namespace rehearse::sharing
