#include "sim/fleet/places.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace rehearse::fleet {
namespace {

std::uint32_t count(std::uint64_t bits) { return static_cast<std::uint32_t>(std::popcount(bits)); }

std::uint32_t bits_of(const SliceKind& kind, std::uint32_t start) {
  return ((1U << kind.size) - 1) << start;
}

/// The slices that a GPU with these positions taken could still hold; larger kinds count for more.
std::uint32_t room(const std::vector<SliceKind>& kinds, std::uint32_t taken) {
  std::uint32_t sum = 0;
  for (const SliceKind& kind : kinds)
    for (const std::uint32_t start : kind.starts)
      if ((bits_of(kind, start) & taken) == 0) sum += kind.size;
  return sum;
}

/// Takes GPUs node by node, lowest first.
class Gathering {
 public:
  Gathering(std::uint32_t gpus_per_node, std::uint32_t gpus)
      : gpus_per_node_(gpus_per_node), left_(gpus) {
    gpus_.reserve(gpus);
  }

  std::uint32_t left() const { return left_; }
  void add(std::uint32_t node, std::uint64_t free, std::uint32_t most) {
    for (; most > 0 && left_ > 0; --most, --left_, free &= free - 1)
      gpus_.push_back(node * gpus_per_node_ + static_cast<std::uint32_t>(std::countr_zero(free)));
  }
  std::vector<std::uint32_t> gpus() && { return std::move(gpus_); }

 private:
  std::uint32_t gpus_per_node_, left_;
  std::vector<std::uint32_t> gpus_;
};

}  // namespace

Places::Places(const Fleet& fleet, Placement placement)
    : fleet_(fleet),
      placement_(placement),
      pod_nodes_(fleet.nodes_per_pod == 0 ? fleet.nodes : fleet.nodes_per_pod),
      all_((1U << fleet.positions) - 1),
      free_gpus_(fleet.gpus()),
      free_positions_(std::uint64_t{fleet.gpus()} * fleet.positions),
      node_free_(fleet.nodes),
      taken_(fleet.gpus(), 0),
      nodes_by_free_(fleet.gpus_per_node + 1),
      shared_(all_ + 1) {
  const std::uint32_t pods = (fleet.nodes + pod_nodes_ - 1) / pod_nodes_;
  pod_free_.assign(pods, 0);
  pod_nodes_by_free_.assign(pods, std::vector<std::set<std::uint32_t>>(fleet.gpus_per_node + 1));
  const std::uint64_t whole =
      fleet.gpus_per_node == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << fleet.gpus_per_node) - 1;
  for (std::uint32_t node = 0; node < fleet.nodes; ++node) {
    node_free_[node] = whole;
    nodes_by_free_.back().insert(nodes_by_free_.back().end(), node);
    auto& full = pod_nodes_by_free_[pod_of_node(node)].back();
    full.insert(full.end(), node);
    pod_free_[pod_of_node(node)] += fleet.gpus_per_node;
  }
  for (std::uint32_t pod = 0; pod < pods; ++pod) pods_by_free_.emplace(pod_free_[pod], pod);

  for (std::uint32_t taken = 1; taken < all_; ++taken) fullest_first_.push_back(taken);
  std::ranges::stable_sort(fullest_first_,
                           [](std::uint32_t a, std::uint32_t b) { return count(a) > count(b); });
  for (const SliceKind& kind : fleet.slices) {
    std::vector<std::uint32_t>& best = start_.emplace_back(all_ + 1, 0);
    for (std::uint32_t taken = 0; taken <= all_; ++taken) {
      std::optional<std::uint32_t> most;
      for (const std::uint32_t start : kind.starts) {
        const std::uint32_t bits = bits_of(kind, start);
        if ((bits & taken) != 0) continue;
        const std::uint32_t left = room(fleet.slices, taken | bits);
        if (most && left <= *most) continue;
        most = left;
        best[taken] = bits;
      }
    }
  }
}

std::uint32_t Places::free_in_node(std::uint32_t node) const { return count(node_free_[node]); }

bool Places::possible(const Need& need) const {
  if (need.kinds != 0) return true;
  const std::uint32_t pod = std::min(pod_nodes_, fleet_.nodes) * fleet_.gpus_per_node;
  return need.gpus <= (placement_ == Placement::kRail ? pod : fleet_.gpus());
}

bool Places::is_in(const Keep& keep, std::uint32_t gpu) const {
  switch (keep.domain) {
    case Keep::Domain::kFleet: return true;
    case Keep::Domain::kPod: return pod_of_node(node_of(gpu)) == keep.index;
    case Keep::Domain::kNode: return node_of(gpu) == keep.index;
    case Keep::Domain::kGpu: return gpu == keep.index;
  }
  return true;
}

std::uint64_t Places::positions_of(const Need& need) const {
  if (need.kinds == 0) return std::uint64_t{need.gpus} * fleet_.positions;
  return fleet_.slices[static_cast<std::size_t>(std::countr_zero(need.kinds))].size;
}

bool Places::fits(const Need& need, const Keep* keep) const {
  return need.kinds == 0 ? whole_fits(need.gpus, keep) : slice_fits(need, keep);
}

std::optional<Spot> Places::find(const Need& need, const Keep* keep) const {
  return need.kinds == 0 ? find_whole(need.gpus, keep) : find_slice(need, keep);
}

std::optional<std::uint32_t> Places::shared_gpu(std::uint32_t kind, const Keep* keep) const {
  for (const std::uint32_t taken : fullest_first_) {
    if (start_[kind][taken] == 0) continue;
    for (const std::uint32_t gpu : shared_[taken]) {
      if (keep) {
        if (keep->domain == Keep::Domain::kGpu && gpu == keep->index) continue;
        if (keep->spare == 0 && keep->counted.contains(gpu)) continue;
      }
      return gpu;
    }
  }
  return std::nullopt;
}

bool Places::slice_fits(const Need& need, const Keep* keep) const {
  if (whole_fits(1, keep)) return true;
  for (std::uint32_t kind = 0; kind < fleet_.slices.size(); ++kind)
    if ((need.kinds >> kind & 1) != 0 && shared_gpu(kind, keep)) return true;
  return false;
}

std::optional<Spot> Places::find_slice(const Need& need, const Keep* keep) const {
  for (std::uint32_t kind = 0; kind < fleet_.slices.size(); ++kind) {
    if ((need.kinds >> kind & 1) == 0) continue;
    if (const auto gpu = shared_gpu(kind, keep))
      return Spot{{*gpu}, kind, start_[kind][taken_[*gpu]]};
    if (std::optional<Spot> fresh = find_whole(1, keep))
      return Spot{std::move(fresh->gpus), kind, start_[kind][0]};
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Places::one_node(std::uint32_t gpus, const Keep* keep) const {
  for (std::uint32_t free = gpus; free <= fleet_.gpus_per_node; ++free)
    for (const std::uint32_t node : nodes_by_free_[free]) {
      if (keep && gpus > keep->spare) {
        if (keep->domain == Keep::Domain::kNode && node == keep->index) continue;
        if (keep->domain == Keep::Domain::kPod && pod_of_node(node) == keep->index) continue;
      }
      return node;
    }
  return std::nullopt;
}

std::optional<std::uint32_t> Places::one_pod(std::uint32_t gpus, const Keep* keep) const {
  for (auto at = pods_by_free_.lower_bound({gpus, 0}); at != pods_by_free_.end(); ++at) {
    const auto [free, pod] = *at;
    if (keep && keep->domain == Keep::Domain::kPod && pod == keep->index && gpus > keep->spare)
      continue;
    if (keep && keep->domain == Keep::Domain::kNode && pod_of_node(keep->index) == pod) {
      const std::uint32_t there = free_in_node(keep->index);
      if (free - there + std::min(there, keep->spare) < gpus) continue;
    }
    return pod;
  }
  return std::nullopt;
}

bool Places::whole_fits(std::uint32_t gpus, const Keep* keep) const {
  if (gpus > free_gpus_) return false;
  if (keep && keep->domain == Keep::Domain::kFleet && gpus > keep->spare) return false;
  if (placement_ != Placement::kRail) return true;
  return gpus <= fleet_.gpus_per_node ? one_node(gpus, keep).has_value()
                                      : one_pod(gpus, keep).has_value();
}

std::optional<Spot> Places::find_whole(std::uint32_t gpus, const Keep* keep) const {
  if (!whole_fits(gpus, keep)) return std::nullopt;
  Gathering gathering(fleet_.gpus_per_node, gpus);
  if (placement_ == Placement::kSpread) {
    // How many of each node: the fullest lists are drained level by level.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> taken_of;  // node, GPUs
    std::vector<std::size_t> level;                                 // indices of taken_of
    std::uint32_t left = gpus;
    for (std::uint32_t free = fleet_.gpus_per_node; left > 0; --free) {
      for (auto node = nodes_by_free_[free].begin();
           node != nodes_by_free_[free].end() && level.size() < gpus; ++node) {
        level.push_back(taken_of.size());
        taken_of.emplace_back(*node, 0);
      }
      std::ranges::sort(level, [&](std::size_t a, std::size_t b) {
        return taken_of[a].first < taken_of[b].first;
      });
      for (std::size_t i = 0; i < level.size() && left > 0; ++i, --left)
        ++taken_of[level[i]].second;
    }
    for (const auto& [node, most] : taken_of) gathering.add(node, node_free_[node], most);
  } else if (const auto fullest =
                 gpus <= fleet_.gpus_per_node ? one_node(gpus, keep) : std::nullopt) {
    gathering.add(*fullest, node_free_[*fullest], gpus);
  } else {
    // Nodes with the most free GPUs first; the last piece goes where it fits best.
    const std::optional<std::uint32_t> pod =
        placement_ == Placement::kRail ? one_pod(gpus, keep) : std::nullopt;
    const auto& lists = pod ? pod_nodes_by_free_[*pod] : nodes_by_free_;
    const bool limited = keep && keep->domain == Keep::Domain::kNode;
    for (std::uint32_t free = fleet_.gpus_per_node; free > 0 && gathering.left() > 0; --free)
      for (auto node = lists[free].begin(); node != lists[free].end() && gathering.left() > 0;
           ++node) {
        if (limited && *node == keep->index) continue;
        if (gathering.left() < free) {
          std::uint32_t best = gathering.left();
          while (lists[best].empty() ||
                 (limited && lists[best].size() == 1 && *lists[best].begin() == keep->index))
            ++best;
          if (best == free) {
            gathering.add(*node, node_free_[*node], gathering.left());
          } else {
            auto at = lists[best].begin();
            if (limited && *at == keep->index) ++at;
            gathering.add(*at, node_free_[*at], gathering.left());
          }
          break;
        }
        gathering.add(*node, node_free_[*node], free);
      }
    if (limited && gathering.left() > 0)
      gathering.add(keep->index, node_free_[keep->index], std::min(gathering.left(), keep->spare));
    REHEARSE_CHECK(gathering.left() == 0);
  }
  return Spot{std::move(gathering).gpus(), {}, all_};
}

void Places::move_node(std::uint32_t node, std::uint64_t free) {
  const std::uint32_t pod = pod_of_node(node), before = count(node_free_[node]), now = count(free);
  node_free_[node] = free;
  if (before == now) return;
  nodes_by_free_[before].erase(node);
  nodes_by_free_[now].insert(node);
  pod_nodes_by_free_[pod][before].erase(node);
  pod_nodes_by_free_[pod][now].insert(node);
  pods_by_free_.erase({pod_free_[pod], pod});
  pod_free_[pod] += now - before;
  pods_by_free_.emplace(pod_free_[pod], pod);
  free_gpus_ += now - before;
}

void Places::take(const Spot& spot) {
  for (std::size_t i = 0; i < spot.gpus.size();) {
    // GPUs of a node are consecutive.
    const std::uint32_t node = node_of(spot.gpus[i]);
    std::uint64_t free = node_free_[node];
    for (; i < spot.gpus.size() && node_of(spot.gpus[i]) == node; ++i) {
      const std::uint32_t gpu = spot.gpus[i];
      REHEARSE_CHECK((taken_[gpu] & spot.positions) == 0, "GPU {} is taken", gpu);
      if (taken_[gpu] != 0) shared_[taken_[gpu]].erase(gpu);
      free &= ~(std::uint64_t{1} << (gpu % fleet_.gpus_per_node));
      taken_[gpu] |= spot.positions;
      if (spot.slice) shared_[taken_[gpu]].insert(gpu);
      free_positions_ -= count(spot.positions);
    }
    move_node(node, free);
  }
}

void Places::give_back(const Spot& spot) {
  for (std::size_t i = 0; i < spot.gpus.size();) {
    const std::uint32_t node = node_of(spot.gpus[i]);
    std::uint64_t free = node_free_[node];
    for (; i < spot.gpus.size() && node_of(spot.gpus[i]) == node; ++i) {
      const std::uint32_t gpu = spot.gpus[i];
      if (spot.slice) shared_[taken_[gpu]].erase(gpu);
      taken_[gpu] &= ~spot.positions;
      if (taken_[gpu] != 0) shared_[taken_[gpu]].insert(gpu);
      if (taken_[gpu] == 0) free |= std::uint64_t{1} << (gpu % fleet_.gpus_per_node);
      free_positions_ += count(spot.positions);
    }
    move_node(node, free);
  }
}

}  // namespace rehearse::fleet
