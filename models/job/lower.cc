#include "models/job/lower.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "models/comm/interference.h"
#include "models/comm/placement.h"
#include "models/job/concurrent_groups.h"
#include "models/job/fold.h"
#include "models/job/group_network.h"
#include "models/job/lower_parts.h"
#include "models/job/roofline.h"
#include "sim/base/check.h"
#include "sim/program/lower.h"

namespace rehearse::job {
namespace {

using cluster::Cluster, graph::Category, graph::FlowRoute, graph::MessageFlow, graph::MessageFlows,
    program::Program, program::ProgramOp, program::RankProgram, program::Task;
using FlowRoutes = std::shared_ptr<const std::vector<FlowRoute>>;

Result<Picoseconds> time_at(const Estimate<Seconds>& price, Bound bound) {
  const Seconds time = price.*end_of(bound);
  constexpr double kLongest = 86400;  // more than a day is wrong input
  if (!(time.s() < kLongest)) return fail("a collective or send would last " + to_string(time));
  return Picoseconds::from(time);
}

class Lowering {
 public:
  /// `folded`: null, or the ranks to run for all.
  Lowering(const Program& job, const Cluster& cluster, const Rules& rules, const Folded* folded,
           LinkPaths& paths, program::Assembly& onto, bool common_links)
      : job_(job),
        rules_(rules),
        folded_(folded),
        onto_(onto),
        builder_(onto.builder),
        placement_(cluster, builder_, common_links ? &onto.links : nullptr),
        schedules_(cluster, rules),
        paths_(paths),
        bottleneck_links_(job, schedules_, paths),
        matching_(job) {}

  /// REQUIRES: called once.
  Result<LoweredJob> run() {
    result_.folded = folded_ != nullptr;
    if (folded_) {
      result_.ranks = folded_->symmetry.ranks;
      result_.run_of = folded_->symmetry.run_of;
    } else {
      for (std::uint32_t r = 0; r < job_.ranks(); ++r) result_.ranks.push_back(RankId(r));
    }
    if (folded_)
      for (const ByteRate rate : folded_->shared.links)
        links_.push_back(builder_.add(
            graph::Capacity{.name = builder_.intern(fmt::format("shared link {}", links_.size())),
                            .rate = rate.bytes_per_s()}));
    TRY(program::add_ops(job_, rules_.one_stream, result_, onto_));
    TRY(add_communication());
    TRY(folded_ ? join_folded() : join_all());
    if (rules_.slowdown > 1) comm::interfere(builder_, ops_of_devices(), rules_.slowdown);
    return std::move(result_);
  }

 private:
  Status join_all() {
    TRY(matching_.check_members(result_.first_op));
    result_.collectives = std::move(matching_.collectives());
    TRY(carry_collectives());
    const std::vector<graph::Edge> messages = TRY(matching_.messages());
    for (const graph::Edge& edge : messages) builder_.add_edge(edge.from, edge.to);
    carry_sends();
    return {};
  }

  Status join_folded() {
    result_.collectives = std::move(matching_.collectives());
    for (const Collective& collective : result_.collectives) TRY(set_time(collective));
    const auto op = [&](const Symmetry::Place& place) { return result_.op(place.run, place.op); };
    for (const Symmetry::Arrival& arrival : folded_->symmetry.arrivals)
      builder_.add_edge(op(arrival.from), op(arrival.to));
    return {};
  }

  /// A send that is carried message by message.
  struct Send {
    OpId op;
    DeviceId from, to;
    Bytes bytes;
    std::int32_t priority;
  };

  /// Completes the shared lowering: the durations of sends, and the matching of ops.
  Status add_communication() {
    std::vector<std::vector<BottleneckTime>> fullest(job_.programs.size());  // at closed fidelity
    for (std::size_t run = 0; run < result_.ranks.size(); ++run) {
      const RankId rank = result_.ranks[run];
      const std::uint32_t number = job_.program_of[rank.index()];
      const RankProgram& program = job_.programs[number];
      if (fullest[number].empty() && rules_.fidelity == Fidelity::kClosed)
        fullest[number] = bottleneck_links_.of_sends(number);
      std::vector<std::uint32_t> issued(job_.groups_of[rank.index()].size(), 0);
      for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        const ProgramOp& op = program.ops[i];
        const OpId id = result_.op(run, i);
        if (op.task == Task::kSend) {
          if (rules_.fidelity == Fidelity::kClosed) TRY(set_send(rank, op, id, fullest[number][i]));
          add_send(rank, op, id);
          if (folded_ && rules_.fidelity == Fidelity::kMessage)
            set_flow(id, flow_of(folded_->carried[run][i], op.priority));
        }
        if (op.task == Task::kReceive && !folded_) matching_.add_receive(rank, op, id);
        if (op.task == Task::kCollective && !op.duration) {
          const std::uint32_t group = folded_ ? folded_->symmetry.meets_in[run][op.group]
                                              : job_.groups_of[rank.index()][op.group];
          TRY(matching_.add_collective(group, issued[op.group]++, op, rank, id));
        }
      }
    }
    return {};
  }

  Status set_send(RankId rank, const ProgramOp& op, OpId id, const BottleneckTime& fullest) {
    const LinkPaths::Path& path =
        paths_.path(DeviceId(rank.index()), DeviceId(job_.peer(rank, op).index()));
    const Seconds time = path.latency.seconds() + fullest.of(op.bytes);
    const auto [price, fresh] = sends_of_time_.try_emplace(time.s(), 0);
    if (fresh) price->second = add_price(on_datasheet_links(time));
    const auto duration = TRY(time_at(result_.prices[price->second], Bound::kValue));
    builder_.set_duration(id, duration);
    result_.priced.push_back({static_cast<std::uint32_t>(id.index()), false, price->second});
    return {};
  }

  void add_send(RankId rank, const ProgramOp& op, OpId id) {
    result_.bytes_sent += op.bytes.b();
    ++result_.messages;
    if (folded_) return;
    matching_.add_send(rank, op, id);
    if (rules_.fidelity == Fidelity::kMessage)
      sends_.push_back({id, DeviceId(rank.index()), DeviceId(job_.peer(rank, op).index()), op.bytes,
                        op.priority});
  }

  /// Represents the messages of all ranks of a program.
  struct Flow {
    Picoseconds before;
    Bytes bytes = Bytes::b(0);
    graph::Demand demand = {};  ///< where there are bytes
  };

  Flow flow_of(const Carried& carried, std::int32_t priority) const {
    if (carried.bytes == Bytes::b(0)) return {carried.before};
    const SharedLinks::ConcurrentSet& concurrent_set =
        folded_->shared.concurrent_sets[carried.concurrent_set];
    if (concurrent_set.taken.empty())
      return {carried.before + Picoseconds::from(carried.bytes / concurrent_set.alone)};
    graph::Demand demand{.rate_cap = concurrent_set.alone.bytes_per_s(), .priority = priority};
    for (const SharedLinks::Taken& taken : concurrent_set.taken) {
      demand.capacities.push_back(links_[taken.link]);
      demand.units_per_work.push_back(taken.messages);
    }
    return {carried.before, carried.bytes, std::move(demand)};
  }

  void set_flow(OpId op, Flow flow) {
    builder_.set_duration(op, flow.before);
    if (flow.bytes == Bytes::b(0)) return;
    builder_.set_work(op, flow.bytes.b());
    flow.demand.server = builder_.so_far().demand(op).server;
    builder_.set_demand(op, builder_.add(std::move(flow.demand)));
  }

  /// That of a collective or a send that is run.
  const Carried& carried_of(OpId op) const {
    const auto place = *result_.place_of(op);
    return folded_->carried[place.run][place.op];
  }

  /// A send is a transfer to an op that exists from the beginning: it waits for no receive.
  void carry_sends() {
    if (sends_.empty()) return;
    const auto flow = one_message();
    std::map<std::tuple<DeviceId, DeviceId, std::int32_t>, FlowRoutes> known;
    const NameId name = builder_.intern("arrival");
    for (const Send& send : sends_) {
      FlowRoutes& routes = known[{send.from, send.to, send.priority}];
      if (!routes) {
        const DeviceId ends[] = {send.from, send.to};
        routes = delayed(placement_.routes({flow}, ends, {.priority = send.priority}));
      }
      const OpId arrival = builder_.add(
          {.name = name, .category = Category::kCommunication, .duration = Picoseconds(0)});
      builder_.add(graph::Transfer{flow, routes, {send.op, arrival}, send.bytes.b()});
    }
  }

  /// The ops that may slow each other down. The others need no capacity for that.
  std::vector<comm::DeviceOps> ops_of_devices() const {
    std::vector<std::vector<char>> overlaps(job_.programs.size());
    std::vector<comm::DeviceOps> devices(result_.ranks.size());
    for (std::size_t r = 0; r < devices.size(); ++r) {
      const std::uint32_t number = job_.program_of[result_.ranks[r].index()];
      const RankProgram& program = job_.programs[number];
      if (overlaps[number].empty()) overlaps[number] = may_overlap(program);
      for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        if (!overlaps[number][i]) continue;
        const bool computes = program.ops[i].task == Task::kCompute;
        (computes ? devices[r].compute : devices[r].communication).push_back(result_.op(r, i));
      }
    }
    return devices;
  }

  /// The schedule of a kind on a group, looked up once.
  Result<const GroupSchedule*> schedule_of(std::uint32_t group, CollectiveKind kind) {
    const auto key = std::pair(group, kind);
    if (const auto known = group_schedules_.find(key); known != group_schedules_.end())
      return &known->second;
    GroupSchedule schedule = TRY(schedules_.of(kind, devices_of(job_.groups[group])));
    if (rules_.fidelity == Fidelity::kClosed && schedule.shares_links())
      schedule.bottleneck_link = TRY(bottleneck_links_.of_collective(group, kind));
    Pricing pricing{kind, schedule.flows->members(), schedule.calibrated != nullptr,
                    schedule.calibrated ? schedule.calibrated->source : schedule.why_not};
    std::vector<Pricing>& all = result_.pricings;
    if (std::ranges::find(all, pricing) == all.end()) all.push_back(std::move(pricing));
    return &group_schedules_.emplace(key, std::move(schedule)).first->second;
  }

  void count(const MessageFlows& flows, Bytes size) {
    result_.messages += flows.messages();
    double share = 0;
    for (const MessageFlow& flow : flows.flows()) share += flow.count * flow.share;
    result_.bytes_sent += share * size.b();
  }

  /// The end of the interval that this run uses.
  /// The number of a price in the result.
  std::uint32_t add_price(const Estimate<Seconds>& price) {
    result_.provenance = std::max(result_.provenance, price.provenance);
    result_.prices.push_back(price);
    return static_cast<std::uint32_t>(result_.prices.size() - 1);
  }

  std::uint32_t price_of(const GroupSchedule& schedule, Bytes size) {
    const auto [known, fresh] = closed_prices_.try_emplace({&schedule, size.b()}, 0);
    if (fresh) known->second = add_price(schedule.price(size));
    return known->second;
  }

  /// Folded: the collective of a single run is its op; several runs wait for each other first.
  Status set_time(const Collective& collective) {
    if (job_.groups[collective.group].members.size() < 2) return {};
    const auto schedule = TRY(schedule_of(collective.group, collective.kind));
    if (rules_.fidelity == Fidelity::kClosed) return set_closed_time(collective, *schedule);
    if (schedule->calibrated)  // for its provenance
      TRY(time_at(result_.prices[price_of(*schedule, collective.bytes)], Bound::kValue));
    join(collective, flow_of(carried_of(collective.members.front()), collective.priority));
    return {};
  }

  Status set_closed_time(const Collective& collective, const GroupSchedule& schedule) {
    const std::uint32_t price = price_of(schedule, collective.bytes);
    const bool alone = collective.members.size() == 1;
    result_.priced.push_back(
        {static_cast<std::uint32_t>(alone ? collective.members.front().index()
                                          : builder_.so_far().transfers().size()),
         !alone, price});
    const auto duration = TRY(time_at(result_.prices[price], Bound::kValue));
    join(collective, {duration});
    return {};
  }

  void join(const Collective& collective, Flow flow) {
    if (collective.members.size() > 1)
      meet(collective, std::move(flow));
    else
      set_flow(collective.members.front(), std::move(flow));
  }

  void meet(const Collective& collective, Flow flow) {
    const auto members = static_cast<std::uint32_t>(collective.members.size());
    auto& flows = concurrent_groups_[members];
    if (!flows) flows = concurrent_group(members);
    const DemandId demand = builder_.add(std::move(flow.demand));
    FlowRoutes& routes = waits_[{members, flow.before.count(), demand}];
    if (!routes) {
      std::vector<FlowRoute> all(flows->flows().size(), FlowRoute{DemandId(0), Picoseconds(0)});
      all[members - 1] = {demand, flow.before};
      routes = std::make_shared<const std::vector<FlowRoute>>(std::move(all));
    }
    builder_.add(graph::Transfer{flows, routes, collective.members, flow.bytes.b()});
  }

  Status carry_collectives() {
    for (const Collective& collective : result_.collectives) {
      const auto n = static_cast<std::uint32_t>(collective.members.size());
      if (n < 2) continue;
      const auto schedule = TRY(schedule_of(collective.group, collective.kind));
      if (rules_.fidelity == Fidelity::kClosed) {
        count(*schedule->flows, collective.bytes);
        TRY(set_closed_time(collective, *schedule));
        continue;
      }
      const comm::Messages messages = TRY(schedules_.messages(
          *schedule, devices_of(job_.groups[collective.group]), collective.bytes));
      count(*messages.flows, collective.bytes);
      if (messages.phases) {
        price_of(*schedule, collective.bytes);  // for its provenance
        for (const OpId member : collective.members)
          builder_.set_duration(member, Picoseconds::from(messages.phases->launch));
      }
      builder_.add(graph::Transfer{messages.flows, routes_of(collective, messages),
                                   collective.members, collective.bytes.b()});
    }
    return {};
  }

  FlowRoutes routes_of(const Collective& collective, const comm::Messages& messages) {
    const comm::LinkShare link_share{
        .priority = collective.priority,
        .group = rules_.grouped ? std::optional(FlowGroupId(flow_groups_++)) : std::nullopt};
    const auto make = [&]() -> FlowRoutes {
      FlowRoutes routes =
          placement_.routes(messages, devices_of(job_.groups[collective.group]), link_share);
      return messages.phases ? routes : delayed(std::move(routes));
    };
    if (rules_.grouped) return make();
    const bool calibrated = messages.phases.has_value();
    FlowRoutes& known = routes_[{collective.group, messages.flows.get(), collective.priority,
                                 calibrated ? collective.bytes.b() : 0}];
    if (!known) known = make();
    return known;
  }

  /// The routes with the overhead of each message.
  FlowRoutes delayed(FlowRoutes routes) const {
    if (rules_.message_overhead == Seconds::s(0)) return routes;
    std::vector<FlowRoute> slower = *routes;
    for (FlowRoute& route : slower) route.latency += Picoseconds::from(rules_.message_overhead);
    return std::make_shared<const std::vector<FlowRoute>>(std::move(slower));
  }

  const Program& job_;
  const Rules& rules_;
  const Folded* folded_;
  program::Assembly& onto_;
  graph::GraphBuilder& builder_;
  comm::Placement placement_;
  Schedules schedules_;
  LinkPaths& paths_;
  BottleneckLinks bottleneck_links_;
  Matching matching_;
  LoweredJob result_;
  std::vector<Send> sends_;
  std::vector<CapacityId> links_;  ///< of the folded
  std::uint32_t flow_groups_ = 0;
  std::map<std::pair<std::uint32_t, CollectiveKind>, GroupSchedule> group_schedules_;
  std::map<std::uint32_t, std::shared_ptr<const MessageFlows>> concurrent_groups_;
  std::map<std::tuple<std::uint32_t, std::int64_t, DemandId>, FlowRoutes> waits_;
  std::map<std::pair<const GroupSchedule*, double>, std::uint32_t> closed_prices_;
  std::map<double, std::uint32_t> sends_of_time_;  ///< their prices, by seconds
  std::map<std::tuple<std::uint32_t, const MessageFlows*, std::int32_t, double>, FlowRoutes>
      routes_;
};

}  // namespace

Result<LoweredJob> add(const Program& job, const Cluster& cluster, const Rules& rules,
                       program::Assembly& onto, bool common_links) {
  TRY(check(job, cluster));
  LinkPaths paths(cluster, rules.message_overhead);
  return Lowering(job, cluster, rules, nullptr, paths, onto, common_links).run();
}

Result<LoweredJob> add(const Program& job, const Cluster& cluster, const Rules& rules,
                       const Folded& folded, LinkPaths& paths, program::Assembly& onto) {
  return Lowering(job, cluster, rules, &folded, paths, onto, false).run();
}

Result<graph::Graph> at_bound(const LoweredJob& job, Bound bound) {
  std::vector<Picoseconds> times;
  for (const Estimate<Seconds>& price : job.prices) times.push_back(TRY(time_at(price, bound)));
  graph::Graph graph = job.graph;
  std::map<std::pair<const std::vector<FlowRoute>*, std::uint32_t>, FlowRoutes> known;
  for (const Priced& priced : job.priced) {
    if (!priced.transfer) {
      graph.set_duration(OpId(priced.index), times[priced.price]);
      continue;
    }
    const graph::Transfer& transfer = graph.transfers()[priced.index];
    FlowRoutes& routes = known[{transfer.routes.get(), priced.price}];
    if (!routes) {
      std::vector<FlowRoute> other = *transfer.routes;
      other[transfer.members.size() - 1].latency = times[priced.price];
      routes = std::make_shared<const std::vector<FlowRoute>>(std::move(other));
    }
    graph.set_routes(priced.index, routes);
  }
  return graph;
}

Result<LoweredJob> with_graph(LoweredJob lowered, program::Assembly onto) {
  lowered.graph = TRY(std::move(onto.builder).build());
  return lowered;
}

Result<LoweredJob> lower(const Program& job, const Cluster& cluster, const Rules& rules) {
  program::Assembly onto;
  LoweredJob lowered = TRY(add(job, cluster, rules, onto, false));
  return with_graph(std::move(lowered), std::move(onto));
}

Status check(const Program& job, const Cluster& cluster) {
  if (job.ranks() == 0) return fail("a job without ranks");
  if (job.ranks() > cluster.devices().size())
    return fail(
        fmt::format("{} ranks on a cluster of {} devices", job.ranks(), cluster.devices().size()),
        "at least one device per rank");
  for (std::uint32_t r = 0; r < job.peers_of.size(); ++r)
    for (std::uint32_t k = 0; k < job.peers_of[r].size(); ++k) {
      const RankId peer = job.peers_of[r][k];
      if (peer.index() < job.ranks() && peer.index() != r) continue;
      const std::vector<ProgramOp>& ops = job.program(RankId(r)).ops;
      const auto op = std::ranges::find_if(ops, [&](const ProgramOp& o) {
        return (o.task == Task::kSend || o.task == Task::kReceive) && o.peer == k;
      });
      if (op == ops.end()) continue;
      return fail(fmt::format("op '{}' of rank {} names rank {} as its peer", job.names[op->name],
                              r, peer.index()),
                  fmt::format("another of the {} ranks", job.ranks()));
    }
  return {};
}

}  // namespace rehearse::job
