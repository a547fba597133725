#include "cli/config/gpu_slices.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::cli {

Result<GpuSlices> slices_of(const cluster::Gpu& gpu) {
  GpuSlices slices{.positions = 1, .kinds = {}};
  for (const cluster::MigProfile* p : cluster::mig_profiles_of(gpu)) {
    slices.positions = p->memory_slices_total;
    if (p->media_extensions || p->placement_size == p->memory_slices_total) continue;
    slices.kinds.push_back({p->name, p->usable_memory.value_or(p->memory), p->placement_size,
                            p->placement_starts,
                            static_cast<double>(p->compute_slices) / p->compute_slices_total});
  }
  if (slices.kinds.empty())
    return fail(fmt::format("'{}' has no MIG profiles in the catalog", gpu.name), {},
                "rehearse catalog mig lists them");
  std::stable_sort(slices.kinds.begin(), slices.kinds.end(),
                   [](const fleet::SliceKind& a, const fleet::SliceKind& b) {
                     return std::pair(a.size, a.rate) < std::pair(b.size, b.rate);
                   });
  return slices;
}

}  // namespace rehearse::cli
