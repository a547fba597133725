#include "models/job/group_network.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "models/comm/scope_of_cluster.h"
#include "models/comm/tcp.h"
#include "models/job/interval.h"
#include "sim/cluster/catalog.h"

namespace rehearse::job {

using comm::Algorithm;
using comm::Schedule;
using comm::Steps;
using graph::Lane;
using graph::Lanes;
using graph::Wait;

namespace {

/// Whether some group of two nodes with two ranks each can do this.
bool does(Algorithm algorithm, CollectiveKind kind) {
  for (const std::uint32_t per_node : {4U, 2U})
    if (comm::schedule(kind, algorithm, {.ranks = 4, .per_node = per_node})) return true;
  return false;
}

/// How many members stand together on each node; 1 where they are not as many on every node.
std::uint32_t members_per_node(const cluster::Cluster& cluster, std::span<const DeviceId> devices) {
  const auto node = [&](std::size_t i) { return cluster.devices()[devices[i].index()].node; };
  std::size_t run = 1;
  while (run < devices.size() && node(run) == node(0)) ++run;
  if (devices.size() % run != 0) return 1;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (node(i) != node(i - i % run) || (i % run == 0 && i > 0 && node(i) == node(i - 1))) return 1;
  return static_cast<std::uint32_t>(run);
}

using Rate = ByteRate Estimate<ByteRate>::*;

/// The bytes alone.
Seconds slowest_flow(const std::vector<Path>& paths, const Steps& steps, Bytes size, Rate rate) {
  Seconds longest = Seconds::s(0);
  for (const Path& path : paths) longest = std::max(longest, size * steps.share / path.rate.*rate);
  return longest;
}

Seconds slowest(const std::vector<Path>& paths, const Steps& steps, Bytes size, Rate rate) {
  Seconds longest = Seconds::s(0);
  for (const Path& path : paths)
    longest = std::max(longest, steps.count * path.latency + size * steps.share / path.rate.*rate);
  return longest;
}

void keep_distinct(std::vector<Path>& paths) {
  std::sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) {
    return std::tuple(a.latency, a.rate.value, a.rate.low) <
           std::tuple(b.latency, b.rate.value, b.rate.low);
  });
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
}

}  // namespace

Algorithm algorithm_for(CollectiveKind kind, const Rules& rules) {
  if (rules.algorithm && does(*rules.algorithm, kind)) return *rules.algorithm;
  return kind == CollectiveKind::kAllToAll ? Algorithm::kPairwise : Algorithm::kRing;
}

std::vector<CollectiveKind> not_done_by(const program::Program& job, Algorithm algorithm) {
  std::vector<CollectiveKind> kinds;
  for (const program::RankProgram& program : job.programs)
    for (const program::ProgramOp& op : program.ops)
      if (op.task == program::Task::kCollective &&
          std::find(kinds.begin(), kinds.end(), op.collective) == kinds.end() &&
          !does(algorithm, op.collective))
        kinds.push_back(op.collective);
  return kinds;
}

Schedule in_parts(const Schedule& schedule, std::uint32_t parts) {
  if (parts <= 1) return schedule;
  const Lanes& one = *schedule.lanes;
  const auto count = static_cast<std::uint32_t>(one.lanes().size());
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  for (std::uint32_t part = 0; part < parts; ++part)
    for (std::uint32_t lane = 0; lane < count; ++lane) {
      const Lane& l = one.lanes()[lane];
      lanes.push_back({l.from, l.to, l.count, l.share / parts});
      // Both members must have done with the part before.
      if (part > 0)
        for (std::uint32_t other = 0; other < count; ++other) {
          const Lane& o = one.lanes()[other];
          if (o.from == l.from || o.to == l.from || o.from == l.to || o.to == l.to)
            waits.push_back({part * count + lane, (part - 1) * count + other, o.count});
        }
      for (const Wait& wait : one.waits(lane))
        waits.push_back({part * count + wait.lane, part * count + wait.on, wait.after, wait.each});
    }
  Schedule result = schedule;
  result.lanes = std::make_shared<Lanes>(one.members(), std::move(lanes), std::move(waits));
  result.local.count *= parts;
  result.across.count *= parts;
  return result;
}

std::shared_ptr<const Lanes> meeting(std::uint32_t members) {
  std::vector<Lane> lanes;
  std::vector<Wait> waits;
  const auto add = [&](const Lane& lane, std::uint32_t behind) {
    if (behind < lanes.size())
      waits.push_back({static_cast<std::uint32_t>(lanes.size()), behind, 1});
    lanes.push_back(lane);
  };
  for (std::uint32_t m = members - 1; m > 0; --m)
    add({m, m - 1, 1, 0}, static_cast<std::uint32_t>(lanes.size()) - 1);
  add({0, 1, 1, 1}, members - 2);
  for (std::uint32_t m = 2; m < members; ++m) add({0, m, 1, 0}, members - 1);
  return std::make_shared<Lanes>(members, std::move(lanes), std::move(waits));
}

Estimate<Seconds> GroupSchedule::price(Bytes size) const {
  if (calibrated) return calibrated->cost.at(size).time;
  const auto flow = [&](Rate rate) {
    return slowest_flow(local_paths, local, size, rate) +
           slowest_flow(across_paths, across, size, rate);
  };
  const auto on_links = [&](Rate rate) {
    Seconds time =
        slowest(local_paths, local, size, rate) + slowest(across_paths, across, size, rate);
    // What others are on the links takes longer as the paths themselves do.
    const Seconds usual = flow(&Estimate<ByteRate>::value), crowded = fullest_link * size.b();
    if (usual > Seconds::s(0) && crowded > usual) time += (crowded - usual) * (flow(rate) / usual);
    return on_datasheet_links(time);
  };
  using Rates = Estimate<ByteRate>;
  Estimate<Seconds> price = on_links(&Rates::value);
  price.low = on_links(&Rates::high).low;
  price.high = on_links(&Rates::low).high;
  return price;
}

bool GroupSchedule::costs_as(const GroupSchedule& other) const {
  const auto alike = [](const Steps& a, const Steps& b) {
    return a.count == b.count && a.share == b.share;
  };
  if (calibrated || other.calibrated) return calibrated == other.calibrated;
  return fullest_link == other.fullest_link && alike(local, other.local) &&
         alike(across, other.across) && local_paths == other.local_paths &&
         across_paths == other.across_paths;
}

Result<const Schedule*> Schedules::schedule(CollectiveKind kind,
                                            std::span<const DeviceId> devices) {
  const auto n = static_cast<std::uint32_t>(devices.size());
  const std::uint32_t per_node = members_per_node(cluster_, devices);
  const auto key = std::tuple(kind, n, per_node);
  auto known = known_.find(key);
  if (known == known_.end()) {
    const Algorithm algorithm = algorithm_for(kind, rules_);
    constexpr std::uint32_t kMostPairs = 4096;  // their lanes would fill the memory
    if (n > kMostPairs && (algorithm == Algorithm::kPairwise || algorithm == Algorithm::kLinear))
      return fail(fmt::format("algorithm '{}' of {} among {} ranks", to_string(algorithm),
                              to_string(kind), n),
                  fmt::format("at most {} ranks, or two_dimensional", kMostPairs));
    Result<Schedule> schedule = comm::schedule(kind, algorithm, {.ranks = n, .per_node = per_node});
    if (!schedule) return forward(schedule);
    known = known_.emplace(key, in_parts(*schedule, rules_.parts)).first;
  }
  return &known->second;
}

Result<std::shared_ptr<const Lanes>> Schedules::lanes(CollectiveKind kind,
                                                      std::span<const DeviceId> devices) {
  const Result<const Schedule*> found = schedule(kind, devices);
  if (!found) return forward(found);
  return (*found)->lanes;
}

Path Schedules::path(DeviceId from, DeviceId to) const {
  const cluster::Route route = cluster_.route(from, to);
  const ByteRate rate = route.path.rate;
  Path path{route.path.latency + rules_.message_overhead,
            {rate, rate, rate, Provenance::kDatasheet}};
  if (!rules_.calibrated) return path;
  for (const HopId hop : route.hops) {
    const LinkId link = cluster::Cluster::link_of(hop);
    const cluster::Link& ends = cluster_.links()[link.index()];
    const bool leaves =
        cluster_.vertices()[ends.a.index()].node != cluster_.vertices()[ends.b.index()].node;
    const cluster::LinkType& type = cluster_.type(link);
    if (!leaves || comm::network_kind(type, route.path.latency) != comm::NetworkKind::kTcp)
      continue;
    path.rate = comm::tcp_rate(rate);
    // A rate that was given may be one that was measured.
    if (cluster::link_named(type.name) == nullptr) path.rate.value = rate;
  }
  return path;
}

Result<GroupSchedule> Schedules::of(CollectiveKind kind, std::span<const DeviceId> devices) {
  const Result<const Schedule*> found = this->schedule(kind, devices);
  if (!found) return forward(found);
  const Schedule& schedule = **found;
  GroupSchedule result{.lanes = schedule.lanes,
                       .local = schedule.local,
                       .across = schedule.across,
                       .local_paths = {},
                       .across_paths = {}};
  if (rules_.calibrated) {
    if (auto cost = calibrated_.of(kind, devices))
      result.calibrated = std::move(*cost);
    else
      result.why_not = cost.error().diagnostics.front().problem;
  }
  if (result.calibrated) return result;  // nothing asks for the links
  const bool two_levels = schedule.across.count > 0 && schedule.local.count > 0;
  for (const Lane& lane : schedule.lanes->lanes()) {
    const DeviceId from = devices[lane.from], to = devices[lane.to];
    const bool crosses =
        cluster_.devices()[from.index()].node != cluster_.devices()[to.index()].node;
    const bool across = two_levels ? crosses : schedule.across.count > 0;
    (across ? result.across_paths : result.local_paths).push_back(path(from, to));
  }
  keep_distinct(result.local_paths);
  keep_distinct(result.across_paths);
  return result;
}

}  // namespace rehearse::job
