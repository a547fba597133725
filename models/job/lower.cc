#include "models/job/lower.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/core.h>

#include "models/comm/placement.h"
#include "models/job/group_network.h"
#include "sim/base/check.h"

namespace rehearse::job {
namespace {

using cluster::Cluster;
using graph::Category;
using graph::Job;
using graph::Lane;
using graph::Lanes;
using graph::Program;
using graph::ProgramOp;
using graph::Task;
using graph::Way;
using Ways = std::shared_ptr<const std::vector<Way>>;

/// To the byte: a rounded size would show two different ones as equal.
std::string exactly(Bytes bytes) { return fmt::format("{:.0f} B", bytes.b()); }

/// The dependencies of a program, and the order of the collectives of one group.
struct Order {
  std::vector<std::uint32_t> first = {0};
  std::vector<std::uint32_t> before;
};

Order order_of(const Program& program, bool one_stream) {
  Order order;
  order.first.reserve(program.ops.size() + 1);
  std::vector<std::optional<std::uint32_t>> last;  // by group
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const std::size_t begin = order.before.size();
    for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1]; ++d)
      order.before.push_back(program.dependencies[d]);
    const ProgramOp& op = program.ops[i];
    if (op.task == Task::kCollective && !one_stream) {
      if (op.group >= last.size()) last.resize(op.group + 1);
      if (last[op.group] && std::find(order.before.begin() + static_cast<std::ptrdiff_t>(begin),
                                      order.before.end(), *last[op.group]) == order.before.end())
        order.before.push_back(*last[op.group]);
      last[op.group] = i;
    }
    order.first.push_back(static_cast<std::uint32_t>(order.before.size()));
  }
  return order;
}

class Lowering {
 public:
  Lowering(const Job& job, const Cluster& cluster, const Rules& rules, std::uint32_t ranks)
      : job_(job),
        cluster_(cluster),
        rules_(rules),
        ranks_(ranks),
        placement_(cluster, builder_),
        schedules_(cluster, rules),
        instances_(job.groups.size()) {}

  /// REQUIRES: to be called once.
  Result<LoweredJob> run(bool folded) {
    result_.folded = folded;
    if (Status ok = add_ops(); !ok) return forward(ok);
    Status carried;
    if (folded)
      carried = set_closed_times();
    else if (carried = check_members(); carried)
      carried = carry_collectives();
    if (!carried) return forward(carried);
    if (Status ok = join_messages(); !ok) return forward(ok);
    Result<graph::Graph> graph = std::move(builder_).build();
    if (!graph) return forward(graph);
    result_.graph = std::move(*graph);
    return std::move(result_);
  }

 private:
  struct Servers {
    std::optional<DemandId> of_task[3];  // compute, host, memory
    std::optional<DemandId> communication;
  };
  /// One end of a message, by sender, receiver and tag.
  struct End {
    OpId op;
    Bytes bytes;
  };
  using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  DemandId server(std::uint32_t rank, std::string_view what) {
    const ServerId server =
        builder_.add(graph::Server{.name = builder_.intern(fmt::format("rank {} {}", rank, what))});
    return builder_.add(graph::Demand{.server = server});
  }

  DemandId demand_of(Servers& servers, std::uint32_t rank, Task task) {
    constexpr std::string_view kNames[] = {"compute", "host", "memory"};
    switch (task) {
      case Task::kCompute:
      case Task::kHost:
      case Task::kMemory: {
        std::optional<DemandId>& known = servers.of_task[static_cast<std::size_t>(task)];
        if (!known) known = server(rank, kNames[static_cast<std::size_t>(task)]);
        return *known;
      }
      case Task::kCollective:
      case Task::kSend:
        if (!rules_.one_stream) return DemandId(0);
        if (!servers.communication) servers.communication = server(rank, "communication");
        return *servers.communication;
      case Task::kReceive:
      case Task::kMark:
        break;
    }
    return DemandId(0);
  }

  static Category category_of(Task task) {
    switch (task) {
      case Task::kCompute:
        return Category::kCompute;
      case Task::kHost:
        return Category::kHost;
      case Task::kMemory:
        return Category::kMemory;
      case Task::kCollective:
      case Task::kSend:
      case Task::kReceive:
        return Category::kCommunication;
      case Task::kMark:
        break;
    }
    return Category::kSynchronization;
  }

  Status add_ops() {
    std::vector<Order> orders;
    for (const Program& program : job_.programs)
      orders.push_back(order_of(program, rules_.one_stream));
    std::size_t ops = 0, edges = 0;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      ops += job_.program(RankId(r)).ops.size();
      edges += orders[job_.program_of[r]].before.size();
    }
    builder_.reserve(ops, edges);
    std::vector<NameId> names;
    for (std::size_t i = 0; i < job_.names.size(); ++i)
      names.push_back(builder_.intern(job_.names[NameId(i)]));
    result_.first_op.push_back(0);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const Program& program = job_.program(RankId(r));
      const Order& order = orders[job_.program_of[r]];
      Servers servers;
      std::vector<std::uint32_t> issued(job_.groups_of[r].size(), 0);
      const std::uint32_t base = result_.first_op.back();
      for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        const ProgramOp& op = program.ops[i];
        const bool communicates =
            op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
        if (!op.duration && !communicates)
          return fail(fmt::format("op '{}' of rank {} has no duration", job_.names[op.name], r),
                      "a device of the catalog, whose rates give one");
        const OpId id = add_op(r, op, names[op.name.index()], servers);
        for (std::uint32_t d = order.first[i]; d < order.first[i + 1]; ++d)
          builder_.add_edge(OpId(base + order.before[d]), id);
        if (op.task == Task::kCollective) {
          const std::uint32_t group = job_.groups_of[r][op.group];
          if (Status ok = join(group, issued[op.group]++, op, RankId(r), id); !ok)
            return forward(ok);
        }
      }
      result_.first_op.push_back(static_cast<std::uint32_t>(builder_.size()));
    }
    return {};
  }

  OpId add_op(std::uint32_t rank, const ProgramOp& op, NameId name, Servers& servers) {
    graph::Op added{.name = name,
                    .category = category_of(op.task),
                    .duration = op.duration.value_or(Picoseconds(0)),
                    .demand = demand_of(servers, rank, op.task)};
    if (op.task == Task::kSend) {
      const Way& way = way_to(DeviceId(rank), DeviceId(op.peer));
      const cluster::PointToPoint path = cluster_.route(DeviceId(rank), DeviceId(op.peer)).path;
      added.duration = way.latency;
      result_.bytes_sent += op.bytes.b();
      ++result_.messages;
      if (rules_.fidelity == Fidelity::kClosed) {
        added.duration += Picoseconds::from(op.bytes / path.rate);
      } else if (op.bytes > Bytes::b(0)) {
        graph::Demand demand = builder_.so_far().demands()[way.demand.index()];
        demand.server = builder_.so_far().demands()[added.demand.index()].server;
        demand.priority = op.priority;
        added.demand = builder_.add(std::move(demand));
        added.work = op.bytes.b();
      }
    }
    const OpId id = builder_.add(added);
    if (op.task == Task::kSend) sends_[{rank, op.peer, op.tag}].push_back({id, op.bytes});
    if (op.task == Task::kReceive) receives_[{op.peer, rank, op.tag}].push_back({id, op.bytes});
    return id;
  }

  const Way& way_to(DeviceId from, DeviceId to) {
    const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
    if (const auto known = ways_.find(key); known != ways_.end()) return known->second;
    const Lanes lane(2, {{0, 1, 1, 1.0}}, {});
    const DeviceId ends[] = {from, to};
    Way way = placement_.ways(lane, ends)->front();
    way.latency += Picoseconds::from(rules_.message_overhead);
    return ways_.emplace(key, way).first->second;
  }

  /// The `index`-th collective of a group, seen by one rank.
  Status join(std::uint32_t group, std::uint32_t index, const ProgramOp& op, RankId rank, OpId id) {
    std::vector<std::uint32_t>& of_group = instances_[group];
    if (index == of_group.size()) {
      of_group.push_back(static_cast<std::uint32_t>(result_.collectives.size()));
      result_.collectives.push_back({op.collective, op.bytes, group, {}});
      priorities_.push_back(op.priority);
      first_ranks_.push_back(rank);
    }
    Collective& collective = result_.collectives[of_group[index]];
    if (collective.kind != op.collective || collective.bytes != op.bytes)
      return fail(
          fmt::format("process group '{}': its collective {} is {} of {} on rank {} and {} of "
                      "{} on rank {}",
                      job_.groups[group].name, index, to_string(collective.kind),
                      exactly(collective.bytes), first_ranks_[of_group[index]].index(),
                      to_string(op.collective), exactly(op.bytes), rank.index()),
          "members that issue the same collectives in the same order");
    collective.members.push_back(id);
    return {};
  }

  /// All members reach each collective. Puts them in the order of the group.
  Status check_members() {
    std::vector<std::uint32_t> place(ranks_, 0);
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      const Job::Group& group = job_.groups[g];
      bool in_order = true;
      for (std::size_t i = 1; i < group.members.size(); ++i)
        in_order = in_order && group.members[i - 1] < group.members[i];
      for (const std::uint32_t index : instances_[g]) {
        std::vector<OpId>& members = result_.collectives[index].members;
        if (members.size() != group.members.size()) return missing(g, index);
        if (in_order) continue;  // as ranks were added
        for (std::size_t i = 0; i < group.members.size(); ++i)
          place[group.members[i].index()] = static_cast<std::uint32_t>(i);
        std::vector<OpId> sorted(members.size(), OpId(0));
        for (const OpId member : members) sorted[place[rank_of(member)]] = member;
        members = std::move(sorted);
      }
    }
    return {};
  }

  std::uint32_t rank_of(OpId op) const {
    const auto next =
        std::upper_bound(result_.first_op.begin(), result_.first_op.end(), op.index());
    return static_cast<std::uint32_t>(next - result_.first_op.begin() - 1);
  }

  tl::unexpected<Error> missing(std::uint32_t g, std::uint32_t index) const {
    const Job::Group& group = job_.groups[g];
    const Collective& collective = result_.collectives[index];
    std::vector<char> came(ranks_, 0);
    for (const OpId member : collective.members) came[rank_of(member)] = 1;
    const auto absent = std::find_if(group.members.begin(), group.members.end(), [&](RankId rank) {
      return rank.index() >= ranks_ || !came[rank.index()];
    });
    const auto number = std::find(instances_[g].begin(), instances_[g].end(), index);
    return fail(
        fmt::format(
            "process group '{}': rank {} never comes to its collective {}, {} of {} on rank {}",
            group.name, absent->index(), number - instances_[g].begin(), to_string(collective.kind),
            exactly(collective.bytes), first_ranks_[index].index()),
        "members that issue the same collectives in the same order");
  }

  std::vector<DeviceId> devices_of(std::uint32_t group) const {
    std::vector<DeviceId> devices;
    for (const RankId rank : job_.groups[group].members) devices.push_back(DeviceId(rank.index()));
    return devices;
  }

  /// The schedule of a kind on a group, looked up once.
  Result<const GroupSchedule*> schedule_of(std::uint32_t group, CollectiveKind kind) {
    const auto key = std::pair(group, kind);
    if (const auto known = group_schedules_.find(key); known != group_schedules_.end())
      return &known->second;
    Result<GroupSchedule> schedule = schedules_.of(kind, devices_of(group));
    if (!schedule) return forward(schedule);
    return &group_schedules_.emplace(key, std::move(*schedule)).first->second;
  }

  void count(const Lanes& lanes, Bytes size) {
    result_.messages += lanes.messages();
    double share = 0;
    for (const Lane& lane : lanes.lanes()) share += lane.count * lane.share;
    result_.bytes_sent += share * size.b();
  }

  Result<Picoseconds> closed_time(const GroupSchedule& schedule, Bytes size) const {
    const Seconds time = schedule.time(size);
    constexpr double kLongest = 86400;  // a collective of more than a day is wrong input
    if (!(time.s() < kLongest)) return fail("a collective would last " + to_string(time));
    return Picoseconds::from(time);
  }

  Status set_closed_times() {
    for (const Collective& collective : result_.collectives) {
      if (job_.groups[collective.group].members.size() < 2) continue;
      const auto schedule = schedule_of(collective.group, collective.kind);
      if (!schedule) return forward(schedule);
      const Result<Picoseconds> time = closed_time(**schedule, collective.bytes);
      if (!time) return forward(time);
      builder_.set_duration(collective.members.front(), *time);
    }
    return {};
  }

  Status carry_collectives() {
    for (std::size_t i = 0; i < result_.collectives.size(); ++i) {
      const Collective& collective = result_.collectives[i];
      const auto n = static_cast<std::uint32_t>(collective.members.size());
      if (n < 2) continue;
      const auto schedule = schedule_of(collective.group, collective.kind);
      if (!schedule) return forward(schedule);
      count(*(*schedule)->lanes, collective.bytes);
      if (rules_.fidelity == Fidelity::kClosed) {
        const Result<Picoseconds> time = closed_time(**schedule, collective.bytes);
        if (!time) return forward(time);
        auto& lanes = meetings_[n];
        if (!lanes) lanes = meeting(n);
        builder_.add(graph::Transfer{lanes, waits_of(*lanes, *time), collective.members, 0});
      } else {
        builder_.add(graph::Transfer{(*schedule)->lanes,
                                     ways_of(collective, **schedule, priorities_[i]),
                                     collective.members, collective.bytes.b()});
      }
    }
    return {};
  }

  Ways waits_of(const Lanes& lanes, Picoseconds time) {
    Ways& known = waits_[{lanes.members(), time.count()}];
    if (known) return known;
    std::vector<Way> ways(lanes.lanes().size(), Way{DemandId(0), Picoseconds(0)});
    for (std::size_t i = lanes.members() - 1; i < ways.size(); ++i) ways[i].latency = time;
    known = std::make_shared<const std::vector<Way>>(std::move(ways));
    return known;
  }

  Ways ways_of(const Collective& collective, const GroupSchedule& schedule, std::int32_t priority) {
    Ways& known = ways_of_group_[{collective.group, schedule.lanes.get(), priority}];
    if (known) return known;
    Ways ways =
        placement_.ways(*schedule.lanes, devices_of(collective.group), {.priority = priority});
    if (rules_.message_overhead > Seconds::s(0)) {
      std::vector<Way> slower = *ways;
      for (Way& way : slower) way.latency += Picoseconds::from(rules_.message_overhead);
      ways = std::make_shared<const std::vector<Way>>(std::move(slower));
    }
    known = ways;
    return known;
  }

  Status join_messages() {
    const auto describe = [](const Channel& c) {
      return fmt::format("from rank {} to rank {} with tag {}", std::get<0>(c), std::get<1>(c),
                         std::get<2>(c));
    };
    for (const auto& [channel, sends] : sends_) {
      const auto found = receives_.find(channel);
      const std::size_t received = found == receives_.end() ? 0 : found->second.size();
      if (received != sends.size())
        return fail(fmt::format("{} messages {}, of which {} are received", sends.size(),
                                describe(channel), received),
                    "a receive for every send");
      for (std::size_t i = 0; i < sends.size(); ++i) {
        if (sends[i].bytes != found->second[i].bytes)
          return fail(fmt::format("message {} {} has {} and its receive {}", i, describe(channel),
                                  exactly(sends[i].bytes), exactly(found->second[i].bytes)));
        builder_.add_edge(sends[i].op, found->second[i].op);
      }
    }
    for (const auto& [channel, receives] : receives_)
      if (!sends_.contains(channel))
        return fail(fmt::format("{} receives of messages {}, which are never sent", receives.size(),
                                describe(channel)),
                    "a send for every receive");
    return {};
  }

  const Job& job_;
  const Cluster& cluster_;
  const Rules& rules_;
  const std::uint32_t ranks_;
  graph::GraphBuilder builder_;
  comm::Placement placement_;
  Schedules schedules_;
  LoweredJob result_;
  std::vector<std::vector<std::uint32_t>> instances_;  // by group: in result_.collectives
  std::vector<std::int32_t> priorities_;               // by collective
  std::vector<RankId> first_ranks_;                    // by collective: who came first
  std::map<Channel, std::vector<End>> sends_, receives_;
  std::map<std::pair<std::uint32_t, CollectiveKind>, GroupSchedule> group_schedules_;
  std::map<std::uint32_t, std::shared_ptr<const Lanes>> meetings_;
  std::map<std::pair<std::uint32_t, std::int64_t>, Ways> waits_;
  std::map<std::tuple<std::uint32_t, const Lanes*, std::int32_t>, Ways> ways_of_group_;
  std::unordered_map<std::uint64_t, Way> ways_;
};

/// What a rank says about others must fit the job.
Status check(const Job& job, const Cluster& cluster) {
  if (job.ranks() == 0) return fail("a job without ranks");
  if (job.ranks() > cluster.devices().size())
    return fail(
        fmt::format("{} ranks on a cluster of {} devices", job.ranks(), cluster.devices().size()),
        "a device for each rank");
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    for (const ProgramOp& op : job.program(RankId(r)).ops)
      if ((op.task == Task::kSend || op.task == Task::kReceive) &&
          (op.peer >= job.ranks() || op.peer == r))
        return fail(fmt::format("op '{}' of rank {} names rank {} as its peer", job.names[op.name],
                                r, op.peer),
                    fmt::format("another of the {} ranks", job.ranks()));
  return {};
}

}  // namespace

Result<LoweredJob> lower(const Job& job, const Cluster& cluster, const Rules& rules) {
  if (Status ok = check(job, cluster); !ok) return forward(ok);
  return Lowering(job, cluster, rules, job.ranks()).run(false);
}

Result<std::optional<LoweredJob>> fold(const Job& job, const Cluster& cluster, const Rules& rules) {
  REHEARSE_CHECK(rules.fidelity == Fidelity::kClosed);
  if (Status ok = check(job, cluster); !ok) return forward(ok);
  if (job.programs.size() > 1) return std::nullopt;
  const Program& program = job.programs.front();
  Schedules schedules(cluster, rules);
  std::vector<std::pair<std::uint32_t, CollectiveKind>> used;
  for (const ProgramOp& op : program.ops) {
    if (op.task == Task::kSend || op.task == Task::kReceive) return std::nullopt;
    const auto key = std::pair(op.group, op.collective);
    if (op.task == Task::kCollective && std::find(used.begin(), used.end(), key) == used.end())
      used.push_back(key);
  }
  for (const auto& [local, kind] : used) {
    std::vector<std::uint32_t> groups;
    for (const std::vector<std::uint32_t>& of_rank : job.groups_of)
      groups.push_back(of_rank[local]);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    std::optional<GroupSchedule> first;
    for (const std::uint32_t group : groups) {
      if (job.groups[group].members.size() != job.groups[groups.front()].members.size())
        return std::nullopt;
      if (job.groups[group].members.size() < 2) continue;
      std::vector<DeviceId> devices;
      for (const RankId rank : job.groups[group].members) devices.push_back(DeviceId(rank.index()));
      Result<GroupSchedule> schedule = schedules.of(kind, devices);
      if (!schedule) return forward(schedule);
      if (first && !first->costs_as(*schedule)) return std::nullopt;
      if (!first) first = std::move(*schedule);
    }
  }
  Result<LoweredJob> lowered = Lowering(job, cluster, rules, 1).run(true);
  if (!lowered) return forward(lowered);
  return std::optional(std::move(*lowered));
}

}  // namespace rehearse::job
