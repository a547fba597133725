// GroupNetwork: the schedules of a process group's collectives and the ways between its devices.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/comm/schedule.h"
#include "models/job/calibrated.h"
#include "models/job/lower.h"
#include "sim/cluster/cluster.h"

namespace rehearse::job {

/// What a message takes: the links of the cluster, and of TCP what NCCL gets of it (comm/tcp.h).
struct Path {
  Seconds latency;
  Estimate<ByteRate> rate;

  friend bool operator==(const Path& a, const Path& b) {
    return a.latency == b.latency && a.rate.value == b.rate.value && a.rate.low == b.rate.low;
  }
};

/// A schedule with the distinct ways that its messages take; without them where it is calibrated.
struct GroupSchedule {
  std::shared_ptr<const graph::Lanes> lanes;
  comm::Steps local, across;
  std::vector<Path> local_paths, across_paths;
  /// Absent where Rules::calibrated does not ask for it, or for the reason in `why_not`.
  std::shared_ptr<const CalibratedCost> calibrated = {};
  std::string why_not = {};
  /// How long the fullest link takes for a byte of the size of each of the groups that do the same
  /// at the same time; not where it is calibrated, whose share of NICs is that already.
  Seconds fullest_link = Seconds::s(0);

  /// As calibrated; else the closed form on the slowest of the paths (interval.h), or, where others
  /// are on its links, what the fullest of them takes. At the ends of the interval, at those of
  /// the paths' rates.
  Estimate<Seconds> price(Bytes size) const;
  /// Whether both always give the same price.
  bool costs_as(const GroupSchedule& other) const;
};

/// Schedules are shared by groups of equal shape.
class Schedules {
 public:
  /// REQUIRES: both outlive this object.
  Schedules(const cluster::Cluster& cluster, const Rules& rules)
      : cluster_(cluster), rules_(rules), calibrated_(cluster) {}

  /// REQUIRES: at least two devices.
  Result<GroupSchedule> of(CollectiveKind kind, std::span<const DeviceId> devices);
  /// Its messages alone.
  Result<std::shared_ptr<const graph::Lanes>> lanes(CollectiveKind kind,
                                                    std::span<const DeviceId> devices);

 private:
  Path path(DeviceId from, DeviceId to) const;
  Result<const comm::Schedule*> schedule(CollectiveKind kind, std::span<const DeviceId> devices);

  const cluster::Cluster& cluster_;
  const Rules& rules_;
  std::map<std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>, comm::Schedule> known_;
  CalibratedCosts calibrated_;
};

/// A collective that is one message: all members come, the last one ends the chain to member 0, and
/// lane n - 1, from there to member 1, is the message, behind which all others end at once.
/// REQUIRES: at least two members.
std::shared_ptr<const graph::Lanes> meeting(std::uint32_t members);

/// `parts` schedules one after the other, each of an equal part of the size.
comm::Schedule in_parts(const comm::Schedule& schedule, std::uint32_t parts);

/// The algorithm that the rules lead to for a kind.
comm::Algorithm algorithm_for(CollectiveKind kind, const Rules& rules);

}  // namespace rehearse::job
