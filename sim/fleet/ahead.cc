#include "sim/fleet/ahead.h"

#include <bit>

namespace rehearse::fleet {
namespace {

std::uint32_t at(const std::unordered_map<std::uint32_t, std::uint32_t>& map, std::uint32_t key) {
  const auto found = map.find(key);
  return found == map.end() ? 0 : found->second;
}

}  // namespace

void Ahead::give_back(const Spot& spot) {
  for (const std::uint32_t gpu : spot.gpus) {
    std::uint32_t& taken = taken_.try_emplace(gpu, places_.taken(gpu)).first->second;
    taken &= ~spot.positions;
    touched_.insert(gpu);
    if (taken != 0) continue;
    if (spot.slice) shared_.insert(gpu);
    const std::uint32_t node = gpu / gpus_per_node_;
    ++freed_;
    ++of_node_[node];
    ++of_pod_[places_.pod_of_node(node)];
  }
}

std::uint32_t Ahead::free_in_pod(std::uint32_t pod) const {
  return places_.free_in_pod(pod) + at(of_pod_, pod);
}

std::uint32_t Ahead::free_in_node(std::uint32_t node) const {
  return places_.free_in_node(node) + at(of_node_, node);
}

std::optional<Keep> Ahead::fits() {
  const std::set<std::uint32_t> touched = std::move(touched_);
  touched_.clear();
  const auto keep = [&](Keep::Domain domain, std::uint32_t index, std::uint32_t free) {
    return Keep{domain, index, free - need_.gpus, shared_};
  };
  if (need_.kinds != 0) {
    for (const std::uint32_t gpu : touched)
      for (std::uint32_t kinds = need_.kinds; kinds != 0; kinds &= kinds - 1)
        if (places_.start_of(static_cast<std::uint32_t>(std::countr_zero(kinds)), taken_.at(gpu)) !=
            0)
          return Keep{Keep::Domain::kGpu, gpu, 0, {}};
    return std::nullopt;
  }
  if (placement_ != Placement::kRail) {
    const std::uint32_t free = places_.free_gpus() + freed_;
    if (free < need_.gpus) return std::nullopt;
    return keep(Keep::Domain::kFleet, 0, free);
  }
  for (const std::uint32_t gpu : touched) {
    const std::uint32_t node = gpu / gpus_per_node_, pod = places_.pod_of_node(node);
    if (need_.gpus <= gpus_per_node_) {
      if (free_in_node(node) >= need_.gpus)
        return keep(Keep::Domain::kNode, node, free_in_node(node));
    } else if (free_in_pod(pod) >= need_.gpus) {
      return keep(Keep::Domain::kPod, pod, free_in_pod(pod));
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::fleet
