#include "models/job/group_network.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "models/comm/scope_of_cluster.h"
#include "models/comm/tcp.h"
#include "models/job/roofline.h"
#include "sim/cluster/catalog.h"

namespace rehearse::job {

using comm::Schedule, comm::Steps, graph::MessageFlow, graph::MessageFlows, graph::Wait;

namespace {

/// Whether some group of two nodes with two ranks each can do this.
bool does(Algorithm algorithm, CollectiveKind kind) {
  for (const std::uint32_t per_node : {4U, 2U})
    if (comm::schedule(kind, algorithm, {.ranks = 4, .per_node = per_node})) return true;
  return false;
}

/// The number of consecutive members on each node; 1 if it differs between nodes.
std::uint32_t members_per_node(const cluster::Cluster& cluster, std::span<const DeviceId> devices) {
  const auto node = [&](std::size_t i) { return cluster.devices()[devices[i].index()].node; };
  std::size_t run = 1;
  while (run < devices.size() && node(run) == node(0)) ++run;
  if (devices.size() % run != 0) return 1;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (node(i) != node(i - i % run) || (i % run == 0 && i > 0 && node(i) == node(i - 1))) return 1;
  return static_cast<std::uint32_t>(run);
}

Algorithm algorithm_for(CollectiveKind kind, const Rules& rules) {
  return rules.algorithms[kind].value_or(usual_algorithm(kind));
}

using Rate = ByteRate Estimate<ByteRate>::*;

/// The time that messages occupy the port: their bytes and their costs.
Seconds on_port(const Path& path, const Steps& steps, Bytes size, Rate rate) {
  return size * steps.share / path.rate.*rate + (steps.count + steps.queued) * path.message_cost;
}

Seconds slowest_flow(const std::vector<Path>& paths, const Steps& steps, Bytes size, Rate rate) {
  Seconds longest = Seconds::s(0);
  for (const Path& path : paths) longest = std::max(longest, on_port(path, steps, size, rate));
  return longest;
}

Seconds slowest(const std::vector<Path>& paths, const Steps& steps, Bytes size, Rate rate) {
  Seconds longest = Seconds::s(0);
  for (const Path& path : paths)
    longest = std::max(longest, steps.count * path.latency + on_port(path, steps, size, rate));
  return longest;
}

void keep_distinct(std::vector<Path>& paths) {
  std::ranges::sort(paths, [](const Path& a, const Path& b) {
    return std::tuple(a.latency, a.rate.value, a.rate.low, a.message_cost) <
           std::tuple(b.latency, b.rate.value, b.rate.low, b.message_cost);
  });
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
}

}  // namespace

Algorithm usual_algorithm(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll ? Algorithm::kLinear : Algorithm::kRing;
}

Algorithms wherever_possible(Algorithm algorithm) {
  Algorithms algorithms;
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind)
    if (does(algorithm, static_cast<CollectiveKind>(kind)))
      algorithms[static_cast<CollectiveKind>(kind)] = algorithm;
  return algorithms;
}

std::vector<CollectiveKind> not_done_by(const program::Program& job, Algorithm algorithm) {
  std::vector<CollectiveKind> kinds;
  for (const program::RankProgram& program : job.programs)
    for (const program::ProgramOp& op : program.ops)
      if (op.task == program::Task::kCollective &&
          std::ranges::find(kinds, op.collective) == kinds.end() && !does(algorithm, op.collective))
        kinds.push_back(op.collective);
  return kinds;
}

Schedule in_parts(const Schedule& schedule, std::uint32_t parts) {
  if (parts <= 1) return schedule;
  const MessageFlows& one = *schedule.flows;
  const auto count = static_cast<std::uint32_t>(one.flows().size());
  std::vector<MessageFlow> flows;
  std::vector<Wait> waits;
  for (std::uint32_t part = 0; part < parts; ++part)
    for (std::uint32_t flow = 0; flow < count; ++flow) {
      const MessageFlow& l = one.flows()[flow];
      flows.push_back({l.from, l.to, l.count, l.share / parts});
      // Both members must have finished the previous part.
      if (part > 0)
        for (std::uint32_t other = 0; other < count; ++other) {
          const MessageFlow& o = one.flows()[other];
          if (o.from == l.from || o.to == l.from || o.from == l.to || o.to == l.to)
            waits.push_back({part * count + flow, (part - 1) * count + other, o.count});
        }
      for (const Wait& wait : one.waits(flow))
        waits.push_back({part * count + wait.flow, part * count + wait.on, wait.after, wait.each});
    }
  Schedule result = schedule;
  result.flows = std::make_shared<MessageFlows>(one.members(), std::move(flows), std::move(waits));
  if (schedule.parts) {
    std::vector<double> ports;
    for (std::uint32_t part = 0; part < parts; ++part)
      ports.insert(ports.end(), schedule.parts->begin(), schedule.parts->end());
    result.parts = std::make_shared<std::vector<double>>(std::move(ports));
  }
  if (schedule.across_flows) {
    std::vector<char> across;
    for (std::uint32_t part = 0; part < parts; ++part)
      across.insert(across.end(), schedule.across_flows->begin(), schedule.across_flows->end());
    result.across_flows = std::make_shared<std::vector<char>>(std::move(across));
  }
  result.local.count *= parts;
  result.across.count *= parts;
  result.local.queued *= parts;
  result.across.queued *= parts;
  return result;
}

Seconds Estimate<Seconds>::*end_of(Bound bound) {
  using Times = Estimate<Seconds>;
  return bound == Bound::kLow ? &Times::low : bound == Bound::kHigh ? &Times::high : &Times::value;
}

std::shared_ptr<const MessageFlows> concurrent_group(std::uint32_t members) {
  std::vector<MessageFlow> flows;
  std::vector<Wait> waits;
  const auto add = [&](const MessageFlow& flow, std::uint32_t after) {
    if (after < flows.size()) waits.push_back({static_cast<std::uint32_t>(flows.size()), after, 1});
    flows.push_back(flow);
  };
  for (std::uint32_t m = members - 1; m > 0; --m)
    add({m, m - 1, 1, 0}, static_cast<std::uint32_t>(flows.size()) - 1);
  add({0, 1, 1, 1}, members - 2);
  for (std::uint32_t m = 2; m < members; ++m) add({0, m, 1, 0}, members - 1);
  return std::make_shared<MessageFlows>(members, std::move(flows), std::move(waits));
}

const OnLinks& GroupSchedule::links_for(Bytes size) const {
  const Algorithm algorithm = calibrated->cost.at(size / parts).algorithm;
  const auto found = std::ranges::find(on_links, algorithm, &OnLinks::algorithm);
  return found == on_links.end() ? on_links.front() : *found;
}

comm::Phases GroupSchedule::phases(Bytes size, Bound bound) const {
  const Bytes part = size / parts;
  const OnLinks& links = links_for(size);
  const comm::Price price = calibrated->cost.at(part);
  const std::uint32_t chunks = comm::chunks_of(part);
  comm::Phases phases =
      comm::phases_of(price, end_of(bound), links.schedule, chunks, part, links.rates);
  const double count = comm::steps_in(links.schedule, chunks).count;
  // Each further part launches with its messages.
  for (comm::LevelPhase& phase : phases.levels)
    phase.start += phases.launch * ((parts - 1) / (parts * count)) + message_overhead;
  phases.wire = phases.wire * parts;
  phases.time = (phases.time + count * message_overhead) * parts;
  return phases;
}

Estimate<Seconds> GroupSchedule::price(Bytes size) const {
  if (calibrated) {
    const comm::Phases usual = phases(size, Bound::kValue);
    const Seconds crowded = std::max(Seconds::s(0), bottleneck_link.of(size) - usual.wire);
    const Estimate<Seconds> own = calibrated->cost.at(size / parts).time;
    Estimate<Seconds> price = {usual.time + crowded, phases(size, Bound::kLow).time + crowded,
                               phases(size, Bound::kHigh).time + crowded, own.provenance};
    // Where the links of the cluster decide, their rates are those of datasheets. If the calibration
    // agrees with them, the narrower of both intervals applies.
    Estimate<Seconds> by_links = on_datasheet_links(price.value);
    if (price.value <= own.high * parts) {
      by_links.low = std::max(by_links.low, price.value * (own.low / own.value));
      by_links.high = std::min(by_links.high, price.value * (own.high / own.value));
    }
    price.low = std::min(price.low, by_links.low);
    price.high = std::max(price.high, by_links.high);
    return price;
  }
  const auto flow = [&](Rate rate) {
    return slowest_flow(local_paths, local, size, rate) +
           slowest_flow(across_paths, across, size, rate);
  };
  const auto on_paths = [&](Rate rate) {
    Seconds time =
        slowest(local_paths, local, size, rate) + slowest(across_paths, across, size, rate);
    // The load of others on the links takes longer in the same ratio as the paths themselves.
    const Seconds usual = flow(&Estimate<ByteRate>::value), crowded = bottleneck_link.of(size);
    if (usual > Seconds::s(0) && crowded > usual) time += (crowded - usual) * (flow(rate) / usual);
    return on_datasheet_links(time);
  };
  using Rates = Estimate<ByteRate>;
  Estimate<Seconds> price = on_paths(&Rates::value);
  price.low = on_paths(&Rates::high).low;
  price.high = on_paths(&Rates::low).high;
  return price;
}

bool GroupSchedule::costs_as(const GroupSchedule& other) const {
  const auto alike = [](const Steps& a, const Steps& b) {
    return a.count == b.count && a.share == b.share && a.queued == b.queued;
  };
  if (calibrated || other.calibrated)
    return calibrated == other.calibrated && bottleneck_link == other.bottleneck_link &&
           std::ranges::equal(on_links, other.on_links, [](const OnLinks& a, const OnLinks& b) {
             return a.algorithm == b.algorithm && a.rates == b.rates;
           });
  return bottleneck_link == other.bottleneck_link && alike(local, other.local) &&
         alike(across, other.across) && local_paths == other.local_paths &&
         across_paths == other.across_paths;
}

std::vector<std::uint32_t> Schedules::places_on_node(std::span<const DeviceId> devices) const {
  std::vector<std::uint32_t> places;
  const NodeId node = cluster_.devices()[devices.front().index()].node;
  const std::vector<DeviceId>& all = cluster_.nodes()[node.index()].devices;
  for (const DeviceId device : devices)
    places.push_back(static_cast<std::uint32_t>(std::ranges::find(all, device) - all.begin()));
  return places;
}

bool Schedules::is_mesh(std::span<const DeviceId> devices) const {
  constexpr std::size_t kMost = 8;  // as comm::mesh_cycles
  if (devices.size() < 3 || devices.size() > kMost) return false;
  std::optional<std::uint32_t> type;
  for (std::size_t i = 1; i < devices.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const cluster::Route route = cluster_.route(devices[i], devices[j]);
      if (route.hops.size() != 1) return false;
      const LinkId link = cluster::Cluster::link_of(route.hops.front());
      if (type.value_or(cluster_.links()[link.index()].type) != cluster_.links()[link.index()].type)
        return false;
      type = cluster_.links()[link.index()].type;
    }
  return true;
}

ScheduleKey Schedules::key_of(CollectiveKind kind, Algorithm algorithm,
                              std::span<const DeviceId> devices) const {
  const std::uint32_t per_node = members_per_node(cluster_, devices);
  const NodeId node = cluster_.devices()[devices.front().index()].node;
  const auto nics = static_cast<std::uint32_t>(cluster_.nodes()[node.index()].nics.size());
  return {.kind = kind,
          .algorithm = algorithm,
          .ranks = static_cast<std::uint32_t>(devices.size()),
          .per_node = per_node,
          .rails = std::clamp(nics, 1U, per_node)};
}

Result<const Schedule*> Schedules::schedule(const ScheduleKey& key,
                                            std::span<const DeviceId> devices) {
  auto known = known_.find(key);
  if (known == known_.end()) {
    constexpr std::uint32_t kMostPairs = 4096;  // their flows would fill the memory
    if (key.ranks > kMostPairs &&
        (key.algorithm == Algorithm::kPairwise || key.algorithm == Algorithm::kLinear))
      return fail(fmt::format("algorithm '{}' of {} among {} ranks", to_string(key.algorithm),
                              to_string(key.kind), key.ranks),
                  fmt::format("at most {} ranks, or two_dimensional", kMostPairs));
    comm::Arrangement group{
        .ranks = key.ranks, .per_node = key.per_node, .chunks = key.chunks, .rails = key.rails};
    if (key.cube != 0) group.rings = comm::cube_mesh_cycles(places_on_node(devices));
    if (key.mesh) group.rings = comm::mesh_cycles(key.ranks);
    group.links_apart = key.mesh;
    Schedule schedule = TRY(comm::schedule(key.kind, key.algorithm, group));
    known = known_.emplace(key, in_parts(schedule, key.parts)).first;
  }
  return &known->second;
}

std::array<ByteRate, 2> Schedules::port_rates(const Schedule& schedule,
                                              std::span<const DeviceId> devices) const {
  // By level and link, the share of the size. Routes are not kept: the pairs of a large group would
  // fill the memory.
  std::array<std::vector<double>, 2> loads;
  for (std::vector<double>& load : loads) load.resize(cluster_.hop_count(), 0);
  for (std::size_t i = 0; i < schedule.flows->flows().size(); ++i) {
    const MessageFlow& flow = schedule.flows->flows()[i];
    const std::size_t level =
        schedule.across_flows ? static_cast<std::size_t>((*schedule.across_flows)[i]) : 0;
    for (const HopId hop : cluster_.route(devices[flow.from], devices[flow.to]).hops)
      loads[level][LinkPaths::number(cluster_, hop)] += flow.count * flow.share;
  }
  std::array<ByteRate, 2> rates = {comm::kUnlimited, comm::kUnlimited};
  for (const std::size_t level : {0U, 1U}) {
    const double busy = !schedule.across_flows ? schedule.busy
                        : level == 0           ? schedule.local.share
                                               : schedule.across.share;
    for (std::uint32_t link = 0; link < loads[level].size(); ++link)
      if (loads[level][link] > 0)
        rates[level] =
            std::min(rates[level], LinkPaths::rate(cluster_, link) * (busy / loads[level][link]));
  }
  return rates;
}

Status Schedules::put_on_links(GroupSchedule& group, CollectiveKind kind,
                               std::span<const DeviceId> devices) {
  std::vector<Algorithm> algorithms = group.calibrated->algorithms;
  if (algorithms.empty()) algorithms.push_back(usual_algorithm(kind));
  for (const Algorithm algorithm : algorithms) {
    ScheduleKey key = key_of(kind, algorithm, devices);
    if (group.calibrated->cube_mesh && key.per_node == key.ranks) {
      for (const std::uint32_t place : places_on_node(devices)) key.cube = key.cube * 9 + place + 1;
      // Every other collective is priced as one pass around the rings.
      if (kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kBarrier)
        key.kind = CollectiveKind::kAllGather;
    }
    Result<const Schedule*> found = schedule(key, devices);
    // Algorithms without messages are run as a ring.
    if (!found && algorithm != usual_algorithm(kind))
      found = schedule(key = key_of(kind, usual_algorithm(kind), devices), devices);
    if (!found) return forward(found);
    group.on_links.push_back({algorithm, key, **found, port_rates(**found, devices)});
  }
  return {};
}

Result<const GroupSchedule*> Schedules::alike(CollectiveKind kind,
                                              std::span<const DeviceId> devices) {
  std::pair<CollectiveKind, std::vector<std::uint32_t>> key(kind, {});
  patterns_.clear();
  patterns_.append(devices, key.second);
  auto known = groups_.find(key);
  if (known == groups_.end()) {
    GroupSchedule group = TRY(of(kind, devices));
    known = groups_.emplace(std::move(key), std::move(group)).first;
  }
  return &known->second;
}

Result<comm::Messages> Schedules::messages(CollectiveKind kind, std::span<const DeviceId> devices,
                                           Bytes size) {
  const GroupSchedule& group = *TRY(alike(kind, devices));
  return messages(group, devices, size);
}

Result<comm::Messages> Schedules::messages(const GroupSchedule& group,
                                           std::span<const DeviceId> devices, Bytes size) {
  if (!group.calibrated) return comm::Messages{group.flows, group.ports, {}, {}, group.most};
  const OnLinks& links = group.links_for(size);
  ScheduleKey key = links.key;
  key.parts = rules_.parts;
  if (links.schedule.depth > 0) key.chunks = comm::chunks_of(size / rules_.parts);
  const Schedule& found = *TRY(schedule(key, devices));
  return comm::Messages{found.flows, found.parts, found.across_flows,
                        group.phases(size, Bound::kValue)};
}

Path Schedules::path(DeviceId from, DeviceId to) const {
  const cluster::Route route = cluster_.route(from, to);
  const ByteRate rate = route.path.rate;
  Path path{route.path.latency + route.start_up + rules_.message_overhead,
            {rate, rate, rate, Provenance::kDatasheet},
            route.message_cost};
  if (!rules_.calibrated) return path;
  for (const HopId hop : route.hops) {
    const LinkId link = cluster::Cluster::link_of(hop);
    const cluster::Link& ends = cluster_.links()[link.index()];
    const bool leaves =
        cluster_.vertices()[ends.a.index()].node != cluster_.vertices()[ends.b.index()].node;
    const cluster::LinkType& type = cluster_.type(link);
    const NodeId node = cluster_.devices()[from.index()].node;
    if (!leaves ||
        calibrated_.scopes().kind_of(node, type, route.path.latency) != comm::NetworkKind::kTcp)
      continue;
    path.rate = comm::tcp_rate(rate);
    // A given rate may be a measured one.
    if (cluster::link_named(type.name) == nullptr) path.rate.value = rate;
  }
  return path;
}

Result<GroupSchedule> Schedules::of(CollectiveKind kind, std::span<const DeviceId> devices,
                                    std::shared_ptr<const CalibratedCost> cost) {
  const Algorithm algorithm = algorithm_for(kind, rules_);
  ScheduleKey key = key_of(kind, algorithm, devices);
  key.parts = rules_.parts;
  key.mesh = (algorithm == Algorithm::kRing || algorithm == Algorithm::kLinear) && is_mesh(devices);
  const Schedule& schedule = *TRY(this->schedule(key, devices));
  GroupSchedule result{.flows = schedule.flows,
                       .local = schedule.local,
                       .across = schedule.across,
                       .calibrated = std::move(cost),
                       .parts = rules_.parts,
                       .message_overhead = rules_.message_overhead};
  if (!result.calibrated && rules_.calibrated) {
    // Pairs of messages have only the usual algorithm.
    const bool chosen = algorithm != Algorithm::kPairwise && kind != CollectiveKind::kSendRecv;
    if (auto known = calibrated_.of(kind, devices, chosen ? rules_.algorithms[kind] : std::nullopt))
      result.calibrated = std::move(*known);
    else
      result.why_not = known.error().diagnostics.front().problem;
  }
  if (result.calibrated) {
    TRY(put_on_links(result, kind, devices));
    return result;
  }
  const bool two_levels = schedule.across.count > 0 && schedule.local.count > 0;
  result.ports = schedule.parts;
  // The largest part of a port within nodes, and between them.
  double port[2] = {};
  for (std::size_t i = 0; schedule.parts && i < schedule.parts->size(); ++i) {
    double& most = port[schedule.across_flows ? (*schedule.across_flows)[i] : 0];
    most = std::max(most, (*schedule.parts)[i]);
  }
  for (std::size_t i = 0; i < schedule.flows->flows().size(); ++i) {
    const MessageFlow& flow = schedule.flows->flows()[i];
    const DeviceId from = devices[flow.from], to = devices[flow.to];
    Path route = path(from, to);
    // Each rail carries part of a message.
    const std::size_t level = schedule.across_flows ? (*schedule.across_flows)[i] : 0;
    const double rails = schedule.parts ? port[level] / (*schedule.parts)[i] : 1;
    for (ByteRate* rate : {&route.rate.value, &route.rate.low, &route.rate.high})
      *rate = *rate * rails;
    if (route.rate.value < route.rate.high) result.most = std::min(result.most, route.rate.value);
    const bool crosses =
        cluster_.devices()[from.index()].node != cluster_.devices()[to.index()].node;
    const bool across = two_levels ? crosses : schedule.across.count > 0;
    (across ? result.across_paths : result.local_paths).push_back(route);
  }
  keep_distinct(result.local_paths);
  keep_distinct(result.across_paths);
  return result;
}

}  // namespace rehearse::job
