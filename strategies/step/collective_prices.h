// Collective prices: the cost of a layout's communications on a cluster, without a graph.
//
// Rank r runs on device r. A collective costs the same as for the group of the first rank of the
// stage, in closed form: calibrated if a shipped calibration covers the group and the rules ask
// for it, else on the links of the cluster, which all groups of the stage share. These are
// the prices of closed fidelity (models/job/lower.h). Groups are computed once per place and
// shape, which plans of a search share.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/job/group_network.h"
#include "models/job/link_paths.h"
#include "models/workload/layout.h"
#include "sim/base/estimate.h"
#include "strategies/stage_groups.h"
#include "strategies/step/closed_step.h"

namespace rehearse::step {

class CollectivePrices {
 public:
  /// REQUIRES: both outlive this object; closed fidelity.
  CollectivePrices(const cluster::Cluster& cluster, const job::Rules& rules);

  /// The first rank of a stage with equal prices: whole nodes earlier, if all nodes can be exchanged.
  std::uint32_t place_of(std::uint32_t first_rank) const {
    return exchanged_ > 0 ? first_rank % exchanged_ : first_rank;
  }

  /// Fails if the stage has ranks for which the cluster has no devices, and if the algorithm does
  /// not support the collective. A group of one takes no time.
  Result<Estimate<Seconds>> of(const workload::Op& op, const workload::Stage& stage);
  /// A number that is equal for groups with equal costs of every such collective. Fails as of()
  /// does. REQUIRES: a group of two or more.
  Result<std::uint32_t> likeness(const workload::Op& op, const workload::Stage& stage);
  /// The price of a message from the first rank of a stage to the first of its partners on another,
  /// while all others send to theirs.
  Result<Estimate<Seconds>> message(const workload::Stage& from, const workload::Stage& to,
                                    Bytes bytes);
  /// The time in which all ranks of a stage send `bytes` each, in equal parts to all servers, until
  /// the last message has arrived.
  Result<Estimate<Seconds>> to_servers(const workload::Stage& from,
                                       const workload::Servers& servers, Bytes bytes);

  /// The links that collectives of different stages can overload together, and the load of each
  /// collective on them per byte. Fails as of() does. REQUIRES: groups of two or more.
  Result<const job::SharedLinks::Shared*> shared_links(
      std::span<const StageCollective> collectives);

  /// Forgets routes and loads if there are many; prices stay. Ends the addresses of shared_links().
  void forget_many();

  /// The values of all functions above. REQUIRES: this object outlives them.
  StepPrices step_prices(strategies::Prices ops);

  /// The sources of prices by kind and number of ranks, in the order of their first use.
  const std::vector<job::Pricing>& pricings() const { return pricings_; }

 private:
  /// The key of a group's ranks; a number is appended for its algorithm.
  using Key = std::array<std::uint32_t, 9>;
  struct HashOfKey {
    std::size_t operator()(std::span<const std::uint32_t> key) const {
      std::uint64_t hash = 0;
      for (const std::uint32_t part : key) {
        hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };

  Status has_devices(std::size_t ranks) const;
  Status has_devices(const workload::Stage& stage) const {
    return has_devices(stage.rank(stage.degrees.ranks() - 1) + std::size_t{1});
  }
  static Key key_of(const workload::Op& op, const workload::Stage& stage, std::uint32_t place);
  /// All groups of one kind of the stage, with messages that carry `bytes`, as one concurrent set.
  Result<std::vector<job::ConcurrentGroup>> concurrent_set(CollectiveKind collective,
                                                           strategies::GroupKind kind,
                                                           const workload::Stage& stage,
                                                           Bytes bytes);
  /// The combined link load of these groups per byte: a number in loads_.
  Result<std::uint32_t> load(const workload::Op& op, const workload::Stage& stage);

  const cluster::Cluster& cluster_;
  const job::Rules& rules_;
  std::uint32_t exchanged_ = 0;  ///< devices of a node; 0: nodes cannot be exchanged
  job::Schedules schedules_;
  std::unordered_map<Key, std::uint32_t, HashOfKey> known_;  ///< which of distinct_
  struct Distinct {
    CollectiveKind kind;
    job::GroupSchedule schedule;
    std::unordered_map<double, Estimate<Seconds>> prices;  ///< by bytes
  };
  std::vector<Distinct> distinct_;
  std::optional<job::LinkPaths> paths_;
  std::size_t routes_ = 0;  ///< an upper bound of the routes in paths_ and the links in loads_
  std::unordered_map<Key, std::uint32_t, HashOfKey> load_of_;
  std::vector<std::vector<job::SharedLinks::Loaded>> loads_;
  std::unordered_map<std::vector<std::uint32_t>, job::SharedLinks::Shared, HashOfKey>
      shared_;  ///< by loads
  struct Between {
    Seconds latency;
    job::BottleneckTime bottleneck_link;
  };
  std::map<std::array<std::uint32_t, 10>, Between> between_;
  std::map<std::array<std::uint32_t, 7>, Between> to_servers_;  ///< for a byte of a rank's
  std::vector<job::Pricing> pricings_;
};

}  // namespace rehearse::step
