#include "profiler/replay/slow_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rehearse::replay {
namespace {

using Kind = Recorded::Kind;

/// The corresponding ops of ranks: by rank and in order. All have the same number.
struct SameWork {
  NameId name;
  std::map<std::size_t, std::vector<OpIndex>> of_rank = {};
  std::vector<double> sums = {};  ///< of the seconds of the n-th ops
};

std::vector<SameWork> same_work(const RecordedProgram& program) {
  std::map<std::pair<bool, NameId>, SameWork> by_name;  // of the device, name
  for (std::size_t rank = 0; rank < program.programs.size(); ++rank) {
    const program::RankProgram& of = program.programs[rank];
    for (OpIndex i = 0; i < of.ops.size(); ++i)
      if (is_own_work(of.recorded[i], of.ops[i])) {
        const NameId name = of.ops[i].name;
        const std::pair key(of.recorded[i].kind == Kind::kDevice, name);
        by_name.try_emplace(key, SameWork{name}).first->second.of_rank[rank].push_back(i);
      }
  }
  std::vector<SameWork> found;
  for (auto& [key, work] : by_name) {
    const std::size_t count = work.of_rank.begin()->second.size();
    const bool same = std::ranges::all_of(
        work.of_rank, [&](const auto& of) { return of.second.size() == count; });
    if (work.of_rank.size() < 2 || !same) continue;
    work.sums.assign(count, 0);
    for (const auto& [rank, ops] : work.of_rank)
      for (std::size_t n = 0; n < count; ++n)
        work.sums[n] += program.programs[rank].ops[ops[n]].duration->seconds().s();
    found.push_back(std::move(work));
  }
  return found;
}

double seconds_of(const RecordedProgram& program, std::size_t rank, OpIndex op) {
  return program.programs[rank].ops[op].duration->seconds().s();
}

/// The mean time of the n-th op over the other ranks.
double others(const RecordedProgram& program, const SameWork& work, std::size_t rank,
              std::size_t n) {
  return (work.sums[n] - seconds_of(program, rank, work.of_rank.at(rank)[n])) /
         static_cast<double>(work.of_rank.size() - 1);
}

/// The program if these ranks take the mean of the others' times, or that of all if `ranks` has all.
/// Work that no other rank has keeps its time.
RecordedProgram evened(RecordedProgram program, const std::vector<SameWork>& all,
                       const std::set<std::size_t>& ranks) {
  const bool every = ranks.size() == program.programs.size();
  for (const SameWork& work : all) {
    std::vector<double> sums(work.sums.size(), 0);
    std::size_t count = 0;
    for (const auto& [rank, ops] : work.of_rank) {
      if (!every && ranks.contains(rank)) continue;
      ++count;
      for (std::size_t n = 0; n < ops.size(); ++n) sums[n] += seconds_of(program, rank, ops[n]);
    }
    if (count == 0) continue;
    for (const auto& [rank, ops] : work.of_rank)
      if (ranks.contains(rank))
        for (std::size_t n = 0; n < ops.size(); ++n)
          program.programs[rank].ops[ops[n]].duration =
              Picoseconds::from(Seconds::s(sums[n] / static_cast<double>(count)));
  }
  return program;
}

class Finder {
 public:
  Finder(const std::vector<Recording>& recordings, const ReplayGraph& replay, const Run& run)
      : recordings_(recordings), program_(replay.program), run_(run), work_(same_work(program_)) {}

  Result<Stragglers> find();

 private:
  std::string since(const SameWork& work, std::size_t rank, double ratio) const;
  std::string group_of(const std::vector<SlowRank>& ranks) const;
  /// The step if times of these ranks are evened.
  Result<Seconds> step_with(const std::set<std::size_t>& ranks) const;
  /// The recorded time of an op's row.
  Nanoseconds recorded_at(std::size_t rank, OpIndex op) const;

  const std::vector<Recording>& recordings_;
  const RecordedProgram& program_;
  const Run& run_;
  const std::vector<SameWork> work_;
};

Result<Seconds> Finder::step_with(const std::set<std::size_t>& ranks) const {
  ReplayGraph graph = TRY(to_graph(evened(program_, work_, ranks)));
  const graph::Timeline timeline = TRY(run_(graph.graph()));
  return compare(recordings_, graph, timeline).step_time.simulated;
}

Nanoseconds Finder::recorded_at(std::size_t rank, OpIndex op) const {
  const Recorded& recorded = program_.programs[rank].recorded[op];
  if (!recorded.row) return Nanoseconds(INT64_MIN);
  const Recording& r = recordings_[rank];
  if (recorded.kind != Kind::kDevice) return r.host(*recorded.row).start;
  const auto call = r.launcher(*recorded.row);
  return call ? r.host(*call).start : r.gpu(*recorded.row).start;
}

/// The first step from which on the rank loses at least half as much as on average in most steps.
std::string Finder::since(const SameWork& work, std::size_t rank, double ratio) const {
  const std::vector<StepOps>& steps = program_.replays[rank].steps;
  std::vector<double> own(steps.size(), 0), usual(steps.size(), 0);
  const std::vector<OpIndex>& ops = work.of_rank.at(rank);
  for (std::size_t n = 0; n < ops.size(); ++n) {
    const Nanoseconds at = recorded_at(rank, ops[n]);
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), at,
        [](Nanoseconds time, const StepOps& step) { return time < step.step.start; });
    if (after == steps.begin()) continue;
    const auto s = static_cast<std::size_t>(after - steps.begin()) - 1;
    own[s] += seconds_of(program_, rank, ops[n]);
    usual[s] += others(program_, work, rank, n);
  }
  std::size_t first = steps.size(), slow = 0, all = 0;
  for (std::size_t s = steps.size(); s-- > 0;) {
    if (usual[s] <= 0) continue;
    const bool is_slow = own[s] > usual[s] * (1 + (ratio - 1) / 2);
    ++all;
    slow += is_slow ? 1 : 0;
    if (is_slow && slow * 5 >= all * 4) first = s;
  }
  return first < steps.size() ? steps[first].step.name : "";
}

std::string Finder::group_of(const std::vector<SlowRank>& ranks) const {
  std::set<std::size_t> slow;
  for (const SlowRank& rank : ranks) slow.insert(rank.rank);
  for (const program::Program::Group& group : program_.groups) {
    std::set<std::size_t> members;
    for (const RankId member : group.members) members.insert(member.index());
    if (members == slow && members.size() > 1) return group.name;
  }
  return "";
}

Result<Stragglers> Finder::find() {
  Stragglers found;
  for (std::size_t rank = 0; rank < program_.programs.size(); ++rank) {
    const SameWork* most = nullptr;
    double lost = 0, ratio = 1, busy = 0;
    for (const SameWork& work : work_) {
      const auto ops = work.of_rank.find(rank);
      if (ops == work.of_rank.end()) continue;
      double own = 0, usual = 0;
      for (std::size_t n = 0; n < ops->second.size(); ++n) {
        own += seconds_of(program_, rank, ops->second[n]);
        usual += others(program_, work, rank, n);
      }
      busy += own;
      if (own <= usual * (1 + kSlow) || own - usual <= lost || usual <= 0) continue;
      most = &work;
      lost = own - usual;
      ratio = own / usual;
    }
    if (!most || lost <= kLoss * busy) continue;
    found.ranks.push_back({.rank = rank,
                           .op = std::string(program_.names[most->name]),
                           .ratio = ratio,
                           .since = since(*most, rank, ratio),
                           .lost = Seconds::s(lost)});
  }
  if (found.ranks.empty()) return found;
  found.group = group_of(found.ranks);
  std::ranges::stable_sort(found.ranks,
                           [](const auto& a, const auto& b) { return a.lost > b.lost; });
  if (found.ranks.size() > kMostSlowRanks) found.ranks.resize(kMostSlowRanks);
  for (SlowRank& slow : found.ranks) slow.step_without = TRY(step_with({slow.rank}));
  std::set<std::size_t> all;
  for (std::size_t rank = 0; rank < program_.programs.size(); ++rank) all.insert(rank);
  found.step_if_equal = TRY(step_with(all));
  return found;
}

}  // namespace

bool is_own_work(const Recorded& recorded, const program::ProgramOp& op) {
  if (op.task == program::Task::kCollective) return false;
  if (recorded.kind == Kind::kDevice) return true;
  return recorded.kind == Kind::kHost || recorded.kind == Kind::kCall;
}

Result<RecordedProgram> as_others(RecordedProgram program, const std::set<std::size_t>& ranks) {
  const std::vector<SameWork> work = same_work(program);
  for (const std::size_t rank : ranks)
    if (std::ranges::none_of(work, [&](const SameWork& same) {
          return same.of_rank.contains(rank) &&
                 std::ranges::any_of(same.of_rank,
                                     [&](const auto& of) { return !ranks.contains(of.first); });
        }))
      return fail("no work of this rank corresponds to that of another rank",
                  "recordings of several ranks of one job");
  return evened(std::move(program), work, ranks);
}

Result<Stragglers> find_stragglers(const std::vector<Recording>& recordings,
                                   const ReplayGraph& replay, const Run& run) {
  if (recordings.size() < 2) return Stragglers{};
  return Finder(recordings, replay, run).find();
}

}  // namespace rehearse::replay
