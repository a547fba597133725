#include "models/job/fold.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/job/concurrent_groups.h"
#include "models/job/concurrent_sets.h"
#include "models/job/group_network.h"
#include "models/job/shared_links.h"
#include "sim/base/check.h"

namespace rehearse::job {
namespace {

using cluster::Cluster, program::Program, program::ProgramOp, program::RankProgram, program::Task;

/// The ranks of each run.
std::vector<std::vector<RankId>> ranks_of_runs(const Symmetry& symmetry) {
  std::vector<std::vector<RankId>> ranks(symmetry.ranks.size());
  for (std::uint32_t r = 0; r < symmetry.run_of.size(); ++r)
    ranks[symmetry.run_of[r]].push_back(RankId(r));
  return ranks;
}

/// Divides the ranks of programs by the closed forms of their communication.
class ClosedCosts {
 public:
  ClosedCosts(const Program& job, const Cluster& cluster, const Rules& rules, LinkPaths& paths)
      : job_(job), paths_(paths), schedules_(cluster, rules) {}

  /// One rank of each class communicates at the price of all.
  Result<Classes> classes() {
    std::vector<Used> used;
    for (const RankProgram& program : job_.programs) used.push_back(used_by(program));
    std::vector<std::vector<std::uint32_t>> keys(job_.ranks());
    for (std::uint32_t r = 0; r < job_.ranks(); ++r) {
      const Used& of = used[job_.program_of[r]];
      std::vector<std::uint32_t>& key = keys[r] = {job_.program_of[r]};
      for (const std::uint32_t peer : of.peers) key.push_back(route(RankId(r), peer));
      for (const auto& [local, kind] : of.collectives)
        key.push_back(TRY(price(job_.groups_of[r][local], kind)));
    }
    return classes_of(keys);
  }

 private:
  /// Peers and groups of a program, by their local numbers.
  struct Used {
    std::set<std::uint32_t> peers;
    std::set<std::pair<std::uint32_t, CollectiveKind>> collectives;
  };

  static Used used_by(const RankProgram& program) {
    Used used;
    for (const ProgramOp& op : program.ops) {
      if (op.task == Task::kCollective) used.collectives.emplace(op.group, op.collective);
      if (op.task == Task::kSend) used.peers.insert(op.peer);
    }
    return used;
  }

  /// Routes of equal cost have one number.
  std::uint32_t route(RankId rank, std::uint32_t peer) {
    const RankId to = job_.peers_of[rank.index()][peer];
    const LinkPaths::Path& path = paths_.path(DeviceId(rank.index()), DeviceId(to.index()));
    const auto same = std::ranges::find_if(routes_, [&](const LinkPaths::Path& p) {
      return p.latency == path.latency && p.rate == path.rate &&
             p.message_cost == path.message_cost;
    });
    const auto number = static_cast<std::uint32_t>(same - routes_.begin());
    if (same == routes_.end()) routes_.push_back(path);
    return number;
  }

  /// Collectives of equal cost have one number.
  Result<std::uint32_t> price(std::uint32_t group, CollectiveKind kind) {
    const auto [known, fresh] = prices_.try_emplace({group, kind}, 0);
    if (!fresh || job_.groups[group].members.size() < 2) return known->second;
    const GroupSchedule& schedule = *TRY(schedules_.alike(kind, devices_of(job_.groups[group])));
    const auto same = std::ranges::find_if(
        different_, [&](const auto* s) { return s == &schedule || s->costs_as(schedule); });
    known->second = static_cast<std::uint32_t>(same - different_.begin()) + 1;
    if (same == different_.end()) different_.push_back(&schedule);
    return known->second;
  }

  const Program& job_;
  LinkPaths& paths_;
  Schedules schedules_;
  std::vector<LinkPaths::Path> routes_;
  std::vector<const GroupSchedule*> different_;
  std::map<std::pair<std::uint32_t, CollectiveKind>, std::uint32_t> prices_;
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
          const auto found = TRY(collective(ranks, op));
          if (!found) return std::nullopt;
          known = collectives.emplace(key, *found).first;
        }
        carried[i] = known->second;
      }
      if (op.task == Task::kSend) {
        const std::uint32_t end = end_of_sends(program, i);
        std::pair<std::vector<std::uint32_t>, double> key{{}, op.bytes.b()};
        for (std::uint32_t s = i; s < end; ++s) key.first.push_back(program.ops[s].peer);
        auto known = sends.find(key);
        if (known == sends.end()) {
          const auto found = TRY(together(ranks, key.first, op.bytes));
          if (!found) return std::nullopt;
          known = sends.emplace(std::move(key), *found).first;
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
    const std::vector<ConcurrentGroup> concurrent_set =
        TRY(concurrent_groups_of(job_, ranks, op.group, op.collective, op.bytes, schedules_));
    if (concurrent_set.empty()) return std::optional(Carried{});
    const auto [stream, added] = stream_of_.try_emplace(op.group, streams_);
    if (added) ++streams_;
    const comm::Messages& messages = concurrent_set.front().messages;
    double share = 0;  // of one member
    for (std::uint32_t m = 0; m < messages.flows->members(); ++m)
      share = std::max(share, messages.flows->share_sent(m));
    const double size = messages.phases ? op.bytes.b() : 0;  // what is calibrated differs by it
    return carried(concurrent_set, {op.bytes * share, 1}, {op.group, op.collective, size, {}},
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
    const std::optional<Picoseconds> time = TRY(concurrent_sets_.time(concurrent_set));
    if (!time) return std::nullopt;
    Carried carried{*time};
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
    carried.before = std::max(Picoseconds(0), *time - Picoseconds::from(flowing));
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
  TRY(check(job, cluster));
  if (rules.grouped) return std::nullopt;
  LinkPaths paths(cluster, rules.message_overhead);
  Classes classes = classes_of_programs(job);
  if (rules.fidelity == Fidelity::kClosed) {
    Classes priced = TRY(ClosedCosts(job, cluster, rules, paths).classes());
    if (priced != classes) classes = refined(job, std::move(priced));
  }
  std::optional<Symmetry> symmetry = symmetry_of(job, rules.one_stream, std::move(classes));
  if (!symmetry) return std::nullopt;
  Folded folded{std::move(*symmetry)};
  if (rules.fidelity != Fidelity::kClosed) {
    REHEARSE_CHECK(run);
    MessageCosts costs(job, cluster, rules, run, paths);
    for (const std::vector<RankId>& of_run : ranks_of_runs(folded.symmetry)) {
      auto carried = TRY(costs.of(of_run));
      if (!carried) return std::nullopt;
      folded.carried.push_back(std::move(*carried));
    }
    folded.shared = costs.shared();
  }
  LoweredJob lowered = TRY(add(job, cluster, rules, folded, paths, onto));
  return std::optional(std::move(lowered));
}

Result<std::optional<LoweredJob>> fold(const Program& job, const Cluster& cluster,
                                       const Rules& rules, const Run& run) {
  program::Assembly onto;
  Result<std::optional<LoweredJob>> lowered = add_folded(job, cluster, rules, run, onto);
  if (!lowered || !*lowered) return lowered;
  LoweredJob whole = TRY(with_graph(std::move(**lowered), std::move(onto)));
  return std::optional(std::move(whole));
}

}  // namespace rehearse::job
