// Places: the free GPUs and slices, and the positions where a demand fits.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "sim/fleet/fleet.h"

namespace rehearse::fleet {

/// The request of a job. Jobs with equal demands fit in the same places.
struct Need {
  std::uint32_t gpus = 1;
  std::uint32_t kinds = 0;  ///< bits: the slice kinds that can replace a GPU

  friend auto operator<=>(const Need&, const Need&) = default;
};

/// Parts that are taken, or that could be.
struct Spot {
  std::vector<std::uint32_t> gpus;          ///< node x gpus_per_node + place
  std::optional<std::uint32_t> slice = {};  ///< its kind
  std::uint32_t positions = 0;              ///< bits, of each GPU
};

/// Resources that must be free at a future time, so that jobs that last beyond it may not use them.
struct Keep {
  enum class Domain : std::uint8_t { kFleet, kPod, kNode, kGpu };

  Domain domain = Domain::kFleet;
  std::uint32_t index = 0;  ///< number of the pod, node or GPU
  std::uint32_t spare = 0;  ///< GPUs of the domain that are left over at that instant
  /// Shared GPUs that count as free then: a job that lasts longer takes one of `spare` there.
  std::set<std::uint32_t> counted = {};
};

/// Invariants:
///  1. A GPU is free, or shared and listed by its positions, or taken whole.
///  2. The lists by free GPUs and by positions hold each node and shared GPU once.
class Places {
 public:
  Places(const Fleet& fleet, Placement placement);

  /// Whether it could ever be placed.
  bool possible(const Need& need) const;
  bool fits(const Need& need, const Keep* keep = nullptr) const;
  /// Nothing where it does not fit.
  std::optional<Spot> find(const Need& need, const Keep* keep = nullptr) const;
  void take(const Spot& spot);
  void give_back(const Spot& spot);

  std::uint32_t node_of(std::uint32_t gpu) const { return gpu / fleet_.gpus_per_node; }
  std::uint32_t pod_of_node(std::uint32_t node) const { return node / pod_nodes_; }
  std::uint32_t pods() const { return static_cast<std::uint32_t>(pod_free_.size()); }
  bool is_in(const Keep& keep, std::uint32_t gpu) const;

  std::uint32_t free_gpus() const { return free_gpus_; }
  std::uint32_t free_in_node(std::uint32_t node) const;
  std::uint32_t free_in_pod(std::uint32_t pod) const { return pod_free_[pod]; }
  std::uint64_t free_positions() const { return free_positions_; }
  /// The bits of the positions taken on a GPU; all of them if it is taken whole.
  std::uint32_t taken(std::uint32_t gpu) const { return taken_[gpu]; }
  std::uint32_t all_positions() const { return all_; }
  /// The place of the kind on a GPU with these positions taken: the bits, or 0.
  std::uint32_t start_of(std::uint32_t kind, std::uint32_t taken) const {
    return start_[kind][taken];
  }
  /// The least number of positions that suffices.
  std::uint64_t positions_of(const Need& need) const;

 private:
  bool slice_fits(const Need& need, const Keep* keep) const;
  std::optional<Spot> find_slice(const Need& need, const Keep* keep) const;
  std::optional<std::uint32_t> shared_gpu(std::uint32_t kind, const Keep* keep) const;
  std::optional<Spot> find_whole(std::uint32_t gpus, const Keep* keep) const;
  std::optional<std::uint32_t> one_node(std::uint32_t gpus, const Keep* keep) const;
  std::optional<std::uint32_t> one_pod(std::uint32_t gpus, const Keep* keep) const;
  bool whole_fits(std::uint32_t gpus, const Keep* keep) const;
  void move_node(std::uint32_t node, std::uint64_t free);

  const Fleet fleet_;
  const Placement placement_;
  std::uint32_t pod_nodes_, all_;
  std::uint32_t free_gpus_;
  std::uint64_t free_positions_;
  std::vector<std::uint64_t> node_free_;  // bits of its wholly free GPUs
  std::vector<std::uint32_t> pod_free_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::set<std::uint32_t>> nodes_by_free_;                   // over all pods
  std::vector<std::vector<std::set<std::uint32_t>>> pod_nodes_by_free_;  // by pod
  std::set<std::pair<std::uint32_t, std::uint32_t>> pods_by_free_;
  std::vector<std::set<std::uint32_t>> shared_;  // by positions taken
  std::vector<std::uint32_t> fullest_first_;     // positions taken, of shared GPUs
  std::vector<std::vector<std::uint32_t>> start_;
};

}  // namespace rehearse::fleet
