#include "models/job/fold.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "models/job/concurrent_groups.h"
#include "models/job/concurrent_sets.h"
#include "models/job/group_network.h"
#include "models/job/shared_links.h"
#include "sim/base/check.h"

namespace rehearse::job {
namespace {

using cluster::Cluster;
using graph::MessageFlows;
using program::Program;
using program::ProgramOp;
using program::RankProgram;
using program::Task;

/// The ranks of each run's program.
std::vector<std::vector<RankId>> ranks_of_runs(const Program& job, const Symmetry& symmetry) {
  std::vector<std::vector<RankId>> ranks(symmetry.ranks.size()), all = ranks_of_programs(job);
  for (std::size_t p = 0; p < all.size(); ++p)
    if (!all[p].empty()) ranks[symmetry.run_of_program[p]] = std::move(all[p]);
  return ranks;
}

/// Whether the closed forms of all communication of a program's ranks are equal.
class ClosedCosts {
 public:
  ClosedCosts(const Program& job, const Cluster& cluster, const Rules& rules, LinkPaths& paths)
      : job_(job), paths_(paths), schedules_(cluster, rules) {}

  Result<bool> same(const std::vector<RankId>& ranks) {
    std::vector<std::pair<std::uint32_t, CollectiveKind>> used;
    std::vector<std::uint32_t> peers;
    for (const ProgramOp& op : job_.program(ranks.front()).ops) {
      const auto key = std::pair(op.group, op.collective);
      if (op.task == Task::kCollective && std::find(used.begin(), used.end(), key) == used.end())
        used.push_back(key);
      if (op.task == Task::kSend && std::find(peers.begin(), peers.end(), op.peer) == peers.end())
        peers.push_back(op.peer);
    }
    for (const std::uint32_t peer : peers)
      if (!same_route(ranks, peer)) return false;
    for (const auto& [local, kind] : used) {
      const Result<bool> alike = same_price(ranks, local, kind);
      if (!alike || !*alike) return alike;
    }
    return true;
  }

 private:
  bool same_route(const std::vector<RankId>& ranks, std::uint32_t peer) {
    const LinkPaths::Path* first = nullptr;
    for (const RankId rank : ranks) {
      const RankId to = job_.peers_of[rank.index()][peer];
      const LinkPaths::Path& path = paths_.path(DeviceId(rank.index()), DeviceId(to.index()));
      if (first && (first->latency != path.latency || first->rate != path.rate ||
                    first->message_cost != path.message_cost))
        return false;
      first = &path;
    }
    return true;
  }

  Result<bool> same_price(const std::vector<RankId>& ranks, std::uint32_t local,
                          CollectiveKind kind) {
    const GroupSchedule* first = nullptr;
    for (const Program::Group* group : groups_of(job_, ranks, local)) {
      if (group->members.size() < 2) continue;
      const Result<const GroupSchedule*> schedule = schedules_.alike(kind, devices_of(*group));
      if (!schedule) return forward(schedule);
      if (first && first != *schedule && !first->costs_as(**schedule)) return false;
      first = *schedule;
    }
    return true;
  }

  const Program& job_;
  LinkPaths& paths_;
  Schedules schedules_;
};

/// The costs of programs' communications as messages, alone and on shared links.
class MessageCosts {
 public:
  MessageCosts(const Program& job, const Cluster& cluster, const Rules& rules, const Run& run,
               LinkPaths& paths)
      : job_(job),
        schedules_(cluster, rules),
        paths_(paths),
        concurrent_sets_(cluster, paths, run) {}

  /// By op, for a program that was not requested before; nothing if its ranks differ.
  Result<std::optional<std::vector<Carried>>> of(const std::vector<RankId>& ranks) {
    const RankProgram& program = job_.program(ranks.front());
    std::vector<Carried> carried(program.ops.size());
    std::map<std::tuple<std::uint32_t, CollectiveKind, double>, Carried> collectives;
    std::map<std::pair<std::vector<std::uint32_t>, double>, Carried> sends;
    concurrent_set_of_.clear();
    stream_of_.clear();
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const ProgramOp& op = program.ops[i];
      if (op.task == Task::kCollective) {
        const auto key = std::tuple(op.group, op.collective, op.bytes.b());
        auto known = collectives.find(key);
        if (known == collectives.end()) {
          const auto found = collective(ranks, op);
          if (!found) return forward(found);
          if (!*found) return std::nullopt;
          known = collectives.emplace(key, **found).first;
        }
        carried[i] = known->second;
      }
      if (op.task == Task::kSend) {
        const std::uint32_t end = end_of_sends(program, i);
        std::pair<std::vector<std::uint32_t>, double> key{{}, op.bytes.b()};
        for (std::uint32_t s = i; s < end; ++s) key.first.push_back(program.ops[s].peer);
        auto known = sends.find(key);
        if (known == sends.end()) {
          const auto found = together(ranks, key.first, op.bytes);
          if (!found) return forward(found);
          if (!*found) return std::nullopt;
          known = sends.emplace(std::move(key), **found).first;
        }
        for (; i < end; ++i) carried[i] = known->second;
        --i;
      }
    }
    return carried;
  }

  SharedLinks::Shared shared() const { return links_.shared(); }

 private:
  Result<std::optional<Carried>> collective(const std::vector<RankId>& ranks, const ProgramOp& op) {
    const Result<std::vector<ConcurrentGroup>> concurrent_set =
        concurrent_groups_of(job_, ranks, op.group, op.collective, op.bytes, schedules_);
    if (!concurrent_set) return forward(concurrent_set);
    if (concurrent_set->empty()) return std::optional(Carried{});
    const auto [stream, added] = stream_of_.try_emplace(op.group, streams_);
    if (added) ++streams_;
    const comm::Messages& messages = concurrent_set->front().messages;
    double share = 0;  // of one member
    for (std::uint32_t m = 0; m < messages.flows->members(); ++m)
      share = std::max(share, messages.flows->share_sent(m));
    const double size = messages.phases ? op.bytes.b() : 0;  // what is calibrated differs by it
    return carried(*concurrent_set, {op.bytes * share, 1}, {op.group, op.collective, size, {}},
                   stream->second);
  }

  Result<std::optional<Carried>> together(const std::vector<RankId>& ranks,
                                          const std::vector<std::uint32_t>& peers, Bytes bytes) {
    return carried(sends_of(job_, ranks, peers, bytes), {bytes, static_cast<double>(peers.size())},
                   {0, CollectiveKind::kBarrier, 0, peers}, {});
  }

  /// One of the equal ops of a concurrent set.
  struct Part {
    Bytes bytes;
    double ops;
  };
  /// The key of a set on shared links, without its size if that changes nothing.
  using Shape = std::tuple<std::uint32_t, CollectiveKind, double, std::vector<std::uint32_t>>;

  Result<std::optional<Carried>> carried(std::span<const ConcurrentGroup> concurrent_set,
                                         const Part& part, const Shape& shape,
                                         std::optional<std::uint32_t> stream) {
    const Result<std::optional<Picoseconds>> time = concurrent_sets_.time(concurrent_set);
    if (!time) return forward(time);
    if (!*time) return std::nullopt;
    Carried carried{**time};
    if (!(part.bytes > Bytes::b(0))) return std::optional(carried);
    auto known = concurrent_set_of_.find(shape);
    if (known == concurrent_set_of_.end()) {
      // As fast as its messages alone, if they are slower than the links.
      const std::optional<comm::Phases>& phases = concurrent_set.front().messages.phases;
      const ByteRate most = phases ? part.bytes * part.ops / phases->wire : comm::kUnlimited;
      known = concurrent_set_of_
                  .emplace(shape, links_.add(paths_.load(concurrent_set, part.bytes * part.ops),
                                             stream, most))
                  .first;
    }
    carried.bytes = part.bytes;
    carried.concurrent_set = known->second;
    const Seconds flowing = part.bytes * part.ops / links_.alone(carried.concurrent_set);
    carried.before = std::max(Picoseconds(0), **time - Picoseconds::from(flowing));
    return std::optional(carried);
  }

  const Program& job_;
  Schedules schedules_;
  LinkPaths& paths_;
  ConcurrentSets concurrent_sets_;
  SharedLinks links_;
  std::uint32_t streams_ = 0;
  // For the current program.
  std::map<Shape, std::uint32_t> concurrent_set_of_;
  std::map<std::uint32_t, std::uint32_t> stream_of_;  // by group
};

}  // namespace

Result<std::optional<LoweredJob>> add_folded(const Program& job, const Cluster& cluster,
                                             const Rules& rules, const Run& run,
                                             program::Assembly& onto) {
  if (Status ok = check(job, cluster); !ok) return forward(ok);
  if (rules.grouped) return std::nullopt;
  std::optional<Symmetry> symmetry = symmetry_of(job, rules.one_stream);
  if (!symmetry) return std::nullopt;
  const std::vector<std::vector<RankId>> ranks = ranks_of_runs(job, *symmetry);
  Folded folded{std::move(*symmetry)};
  LinkPaths paths(cluster, rules.message_overhead);
  if (rules.fidelity == Fidelity::kClosed) {
    ClosedCosts costs(job, cluster, rules, paths);
    for (const std::vector<RankId>& of_run : ranks) {
      const Result<bool> same = costs.same(of_run);
      if (!same) return forward(same);
      if (!*same) return std::nullopt;
    }
  } else {
    REHEARSE_CHECK(run);
    MessageCosts costs(job, cluster, rules, run, paths);
    for (const std::vector<RankId>& of_run : ranks) {
      auto carried = costs.of(of_run);
      if (!carried) return forward(carried);
      if (!*carried) return std::nullopt;
      folded.carried.push_back(std::move(**carried));
    }
    folded.shared = costs.shared();
  }
  Result<LoweredJob> lowered = add(job, cluster, rules, folded, paths, onto);
  if (!lowered) return forward(lowered);
  return std::optional(std::move(*lowered));
}

Result<std::optional<LoweredJob>> fold(const Program& job, const Cluster& cluster,
                                       const Rules& rules, const Run& run) {
  program::Assembly onto;
  Result<std::optional<LoweredJob>> lowered = add_folded(job, cluster, rules, run, onto);
  if (!lowered || !*lowered) return lowered;
  Result<LoweredJob> whole = with_graph(std::move(**lowered), std::move(onto));
  if (!whole) return forward(whole);
  return std::optional(std::move(*whole));
}

}  // namespace rehearse::job
