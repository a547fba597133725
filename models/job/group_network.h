// GroupNetwork: the schedules of a process group's collectives and the ways between its devices.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/comm/schedule.h"
#include "models/job/calibrated.h"
#include "models/job/link_paths.h"
#include "models/job/lower.h"
#include "sim/cluster/cluster.h"

namespace rehearse::job {

/// Latency and rate of a message: the links of the cluster, and for TCP NCCL's share (comm/tcp.h).
struct Path {
  Seconds latency;
  Estimate<ByteRate> rate;
  Seconds message_cost = Seconds::s(0);  ///< of cluster::Route

  friend bool operator==(const Path& a, const Path& b) {
    return a.latency == b.latency && a.rate.value == b.rate.value && a.rate.low == b.rate.low &&
           a.message_cost == b.message_cost;
  }
};

/// What decides the messages of a group.
struct ScheduleKey {
  CollectiveKind kind;
  Algorithm algorithm;
  std::uint32_t ranks, per_node, rails;
  std::uint32_t chunks = comm::Arrangement{}.chunks;
  std::uint32_t parts = 1;  ///< Rules::parts
  std::uint32_t cube = 0;   ///< places of the hybrid cube mesh, where its rings are told apart

  friend auto operator<=>(const ScheduleKey&, const ScheduleKey&) = default;
};

/// The schedule of an algorithm on the devices of a group, and the rate of a port on their links,
/// by level: that of the fullest, where each message flows alone.
struct OnLinks {
  Algorithm algorithm;
  ScheduleKey key;
  comm::Schedule schedule;
  std::array<ByteRate, 2> rates;
};

/// A schedule with the distinct ways that its messages take; without them where it is calibrated.
struct GroupSchedule {
  std::shared_ptr<const graph::MessageFlows> flows;
  comm::Steps local, across;
  std::vector<Path> local_paths, across_paths;
  /// As comm::Messages has them, where it is not calibrated.
  std::shared_ptr<const std::vector<double>> ports = {};
  ByteRate most = comm::kUnlimited;
  /// Absent where Rules::calibrated does not ask for it, or for the reason in `why_not`.
  std::shared_ptr<const CalibratedCost> calibrated = {};
  std::string why_not = {};
  /// Where it is calibrated: of each algorithm that sizes lead to, the first for want of others.
  std::vector<OnLinks> on_links = {};
  std::uint32_t parts = 1;
  Seconds message_overhead = Seconds::s(0);
  /// How long the bottleneck link takes for the groups that do the same at the same time; not where
  /// it is calibrated, whose share of NICs is that already.
  BottleneckTime bottleneck_link = {};

  /// The time of its messages where nothing contends: as calibrated, the sum of the phases; else
  /// the closed form on the slowest of the paths (interval.h), or, where others are on its links,
  /// what the fullest of them takes. At the ends of the interval, at those of the paths' rates.
  Estimate<Seconds> price(Bytes size) const;
  /// Whether both always give the same price.
  bool costs_as(const GroupSchedule& other) const;
  /// What its messages take, at that end of the interval. REQUIRES: it is calibrated.
  comm::Phases phases(Bytes size, Bound bound) const;
  const OnLinks& links_for(Bytes size) const;
};

/// Schedules are shared by groups of equal shape.
class Schedules {
 public:
  /// REQUIRES: both outlive this object.
  Schedules(const cluster::Cluster& cluster, const Rules& rules)
      : cluster_(cluster), rules_(rules), calibrated_(cluster), paths_(cluster, Seconds::s(0)) {}

  /// Priced by `cost` where there is one, else as the rules say. REQUIRES: at least two devices.
  Result<GroupSchedule> of(CollectiveKind kind, std::span<const DeviceId> devices,
                           std::shared_ptr<const CalibratedCost> cost = {});
  /// The messages of such a group for a size.
  Result<comm::Messages> messages(CollectiveKind kind, std::span<const DeviceId> devices,
                                  Bytes size);
  Result<comm::Messages> messages(const GroupSchedule& group, std::span<const DeviceId> devices,
                                  Bytes size);

 private:
  Path path(DeviceId from, DeviceId to) const;
  ScheduleKey key_of(CollectiveKind kind, Algorithm algorithm,
                     std::span<const DeviceId> devices) const;
  Result<const comm::Schedule*> schedule(const ScheduleKey& key, std::span<const DeviceId> devices);
  std::array<ByteRate, 2> port_rates(const comm::Schedule& schedule,
                                     std::span<const DeviceId> devices);
  Status put_on_links(GroupSchedule& group, CollectiveKind kind, std::span<const DeviceId> devices);
  std::vector<std::uint32_t> places_on_node(std::span<const DeviceId> devices) const;

  const cluster::Cluster& cluster_;
  const Rules& rules_;
  std::map<ScheduleKey, comm::Schedule> known_;
  CalibratedCosts calibrated_;
  LinkPaths paths_;
  std::map<std::pair<CollectiveKind, std::vector<DeviceId>>, GroupSchedule> groups_;
};

/// A collective that is one message: all members come, the last one ends the chain to member 0, and
/// flow n - 1, from there to member 1, is the message, behind which all others end at once.
/// REQUIRES: at least two members.
std::shared_ptr<const graph::MessageFlows> concurrent_group(std::uint32_t members);

/// `parts` schedules one after the other, each of an equal part of the size.
comm::Schedule in_parts(const comm::Schedule& schedule, std::uint32_t parts);

}  // namespace rehearse::job
