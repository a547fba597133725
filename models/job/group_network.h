// GroupNetwork: the schedules of a process group's collectives and the routes between its devices.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/comm/schedule.h"
#include "models/job/calibrated.h"
#include "models/job/device_patterns.h"
#include "models/job/link_paths.h"
#include "models/job/lower.h"
#include "sim/cluster/cluster.h"

namespace rehearse::job {

/// Latency and rate of a message: those of the cluster's links, with cluster::Route::start_up, and
/// for TCP NCCL's share (comm/tcp.h).
struct Path {
  Seconds latency;
  Estimate<ByteRate> rate;
  Seconds message_cost = Seconds::s(0);  ///< of cluster::Route

  friend bool operator==(const Path& a, const Path& b) {
    return a.latency == b.latency && a.rate.value == b.rate.value && a.rate.low == b.rate.low &&
           a.message_cost == b.message_cost;
  }
};

/// The properties that determine the messages of a group.
struct ScheduleKey {
  CollectiveKind kind;
  Algorithm algorithm;
  std::uint32_t ranks, per_node, rails;
  std::uint32_t chunks = comm::Arrangement{}.chunks;
  std::uint32_t parts = 1;  ///< Rules::parts
  std::uint32_t cube = 0;   ///< places in the hybrid cube mesh, where its rings are distinguished
  bool mesh = false;        ///< each rank has the same link to each other

  friend auto operator<=>(const ScheduleKey&, const ScheduleKey&) = default;
};

/// The schedule of an algorithm on the devices of a group, and the port rate on their links, by
/// level: the rate of the bottleneck link, with each message flowing alone.
struct OnLinks {
  Algorithm algorithm;
  ScheduleKey key;
  comm::Schedule schedule;
  std::array<ByteRate, 2> rates;
};

/// A schedule with the distinct routes of its messages; a calibrated schedule has no routes.
struct GroupSchedule {
  std::shared_ptr<const graph::MessageFlows> flows;
  comm::Steps local, across;
  std::vector<Path> local_paths = {}, across_paths = {};
  /// As in comm::Messages, if the schedule is not calibrated.
  std::shared_ptr<const std::vector<double>> ports = {};
  ByteRate most = comm::kUnlimited;
  /// Absent where Rules::calibrated does not ask for it, or for the reason in `why_not`.
  std::shared_ptr<const CalibratedCost> calibrated = {};
  std::string why_not = {};
  /// If calibrated: one entry for each algorithm that some size selects; the first is the fallback.
  std::vector<OnLinks> on_links = {};
  std::uint32_t parts = 1;
  Seconds message_overhead = Seconds::s(0);
  /// The time that the bottleneck link needs for the groups that do the same at the same time. Unset
  /// unless shares_links().
  BottleneckTime bottleneck_link = {};

  /// Whether groups that do the same at the same time slow each other. The calibrated share of NICs
  /// accounts for them already, and fabrics of NVLink have room for all.
  bool shares_links() const { return !calibrated || calibrated->through_host; }
  /// The time of its messages without contention. If calibrated, it is the sum of the phases,
  /// and what the bottleneck link needs in addition.
  /// Otherwise it is the closed form on the slowest of the paths (roofline.h), or, where others use
  /// its links, the time that the bottleneck link needs. The ends of the interval use the ends of
  /// the paths' rates.
  Estimate<Seconds> price(Bytes size) const;
  /// Whether both always give the same price.
  bool costs_as(const GroupSchedule& other) const;
  /// The phases of its messages at that end of the interval. REQUIRES: it is calibrated.
  comm::Phases phases(Bytes size, Bound bound) const;
  const OnLinks& links_for(Bytes size) const;
};

/// Schedules are shared by groups of equal shape.
class Schedules {
 public:
  /// REQUIRES: both outlive this object.
  Schedules(const cluster::Cluster& cluster, const Rules& rules)
      : cluster_(cluster), rules_(rules), calibrated_(cluster), patterns_(cluster) {}

  /// Priced by `cost` if given, else by the rules. REQUIRES: at least two devices.
  Result<GroupSchedule> of(CollectiveKind kind, std::span<const DeviceId> devices,
                           std::shared_ptr<const CalibratedCost> cost = {});
  /// The same, found once for groups of equal pattern (device_patterns.h).
  Result<const GroupSchedule*> alike(CollectiveKind kind, std::span<const DeviceId> devices);
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
                                     std::span<const DeviceId> devices) const;
  Status put_on_links(GroupSchedule& group, CollectiveKind kind, std::span<const DeviceId> devices);
  bool is_mesh(std::span<const DeviceId> devices) const;
  std::vector<std::uint32_t> places_on_node(std::span<const DeviceId> devices) const;

  const cluster::Cluster& cluster_;
  const Rules& rules_;
  std::map<ScheduleKey, comm::Schedule> known_;
  CalibratedCosts calibrated_;
  DevicePatterns patterns_;
  std::map<std::pair<CollectiveKind, std::vector<std::uint32_t>>, GroupSchedule> groups_;
};

/// The member of an estimate at that end.
Seconds Estimate<Seconds>::*end_of(Bound bound);

/// A collective that represents one message. All members arrive; the last one ends the chain to
/// member 0. Flow n - 1, from there to member 1, is the message, after which all others end at
/// once. REQUIRES: at least two members.
std::shared_ptr<const graph::MessageFlows> concurrent_group(std::uint32_t members);

/// `parts` schedules one after the other, each of an equal part of the size.
comm::Schedule in_parts(const comm::Schedule& schedule, std::uint32_t parts);

}  // namespace rehearse::job
