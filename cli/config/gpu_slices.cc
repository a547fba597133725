#include "cli/config/gpu_slices.h"

#include <algorithm>

namespace rehearse::cli {

Result<GpuSlices> slices_of(const cluster::Gpu& gpu) {
  cluster::MigDevice device = TRY(cluster::mig_device(gpu));
  GpuSlices slices{.device = std::move(device), .positions = 1};
  slices.positions = slices.device.positions;
  for (std::uint32_t i = 0; i < slices.device.profiles.size(); ++i) {
    const cluster::MigProfile& p = slices.device.profile(i);
    if (!p.media_extensions && p.placement_size < p.memory_slices_total)
      slices.profiles.push_back(i);
  }
  const auto rate = [&](std::uint32_t i) { return sharing::rate_by_share(slices.device, i).value; };
  std::ranges::stable_sort(slices.profiles, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(slices.device.profile(a).placement_size, rate(a)) <
           std::pair(slices.device.profile(b).placement_size, rate(b));
  });
  for (const std::uint32_t i : slices.profiles) {
    const cluster::MigProfile& p = slices.device.profile(i);
    slices.kinds.push_back({p.name, p.usable_memory.value_or(p.memory), p.placement_size,
                            p.placement_starts, rate(i)});
  }
  return slices;
}

}  // namespace rehearse::cli
