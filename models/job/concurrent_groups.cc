#include "models/job/concurrent_groups.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace rehearse::job {

using program::Program, program::RankProgram, program::Task;

std::vector<DeviceId> devices_of(const Program::Group& group) {
  std::vector<DeviceId> devices;
  devices.reserve(group.members.size());
  for (const RankId rank : group.members) devices.push_back(DeviceId(rank.index()));
  return devices;
}

namespace {

bool communicates(const program::ProgramOp& op) {
  return op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
}

/// Orders programs by their communication and their dependencies.
bool communicates_less(const RankProgram& a, const RankProgram& b) {
  const auto compare = [](const program::ProgramOp& x,
                          const program::ProgramOp& y) -> std::partial_ordering {
    if (x.task != y.task || !communicates(x)) return x.task <=> y.task;
    return std::tie(x.bytes, x.collective, x.group, x.peer, x.tag, x.priority) <=>
           std::tie(y.bytes, y.collective, y.group, y.peer, y.tag, y.priority);
  };
  const auto ops = std::lexicographical_compare_three_way(a.ops.begin(), a.ops.end(), b.ops.begin(),
                                                          b.ops.end(), compare);
  return ops != 0 ? ops < 0
                  : std::tie(a.dependencies, a.first_dependency) <
                        std::tie(b.dependencies, b.first_dependency);
}

/// By program: the first of those that communicate in the same way.
std::vector<std::uint32_t> first_alike(const Program& job) {
  const auto less = [&](std::uint32_t p, std::uint32_t q) {
    return communicates_less(job.programs[p], job.programs[q]);
  };
  std::set<std::uint32_t, decltype(less)> firsts(less);
  std::vector<std::uint32_t> first;
  for (std::uint32_t p = 0; p < job.programs.size(); ++p) first.push_back(*firsts.insert(p).first);
  return first;
}

}  // namespace

std::vector<std::vector<RankId>> ranks_of_stages(const Program& job) {
  const std::vector<std::uint32_t> alike = first_alike(job);
  std::vector<std::uint32_t> as_many(job.programs.size(), 0);
  for (const std::uint32_t first : alike) ++as_many[first];
  const auto unlike_all = [&](std::uint32_t p) { return as_many[alike[p]] == 1; };
  std::vector<std::uint32_t> stage(job.programs.size());
  std::iota(stage.begin(), stage.end(), 0U);
  const auto join = [&](std::uint32_t p, std::uint32_t q) {
    const std::uint32_t from = stage[q], to = stage[p];
    if (from != to) std::ranges::replace(stage, from, to);
  };
  // Keyed by the peers that they meet in groups, or by a peer number and the peers it means, and by
  // the first program that communicates alike. Programs with equal keys belong to one stage, so one
  // of them represents all, and not every pair is compared.
  std::map<std::tuple<std::optional<std::uint32_t>, std::uint32_t, std::uint32_t>, std::uint32_t>
      met;
  const auto meet = [&](std::optional<std::uint32_t> number, std::uint32_t whom, std::uint32_t p) {
    join(met.try_emplace({number, whom, alike[p]}, p).first->second, p);
  };
  std::set<std::set<std::uint32_t>> together;
  for (const Program::Group& group : job.groups) {
    std::set<std::uint32_t> programs;
    for (const RankId member : group.members) programs.insert(job.program_of[member.index()]);
    together.insert(std::move(programs));
  }
  for (const std::set<std::uint32_t>& programs : together) {
    std::map<std::uint32_t, std::uint32_t> one_of;
    for (const std::uint32_t p : programs)
      if (!unlike_all(p)) join(one_of.try_emplace(alike[p], p).first->second, p);
    for (const std::uint32_t whom : programs)
      for (const auto& [first, p] : one_of) meet(std::nullopt, whom, p);
  }
  // Programs that send to, or receive from, one program under one number.
  for (std::uint32_t r = 0; r < job.peers_of.size(); ++r)
    if (!unlike_all(job.program_of[r]))
      for (std::uint32_t k = 0; k < job.peers_of[r].size(); ++k)
        meet(k, job.program_of[job.peers_of[r][k].index()], job.program_of[r]);
  std::vector<std::vector<RankId>> all(job.programs.size());
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    all[stage[job.program_of[r]]].push_back(RankId(r));
  std::vector<std::vector<RankId>> ranks;
  for (const std::uint32_t s : stage) ranks.push_back(all[s]);
  return ranks;
}

std::vector<const Program::Group*> groups_of(const Program& job, std::span<const RankId> ranks,
                                             std::uint32_t local) {
  std::vector<const Program::Group*> groups;
  std::vector<bool> seen(job.groups.size(), false);
  for (const RankId rank : ranks) {
    const std::uint32_t group = job.groups_of[rank.index()][local];
    if (!seen[group]) groups.push_back(&job.groups[group]);
    seen[group] = true;
  }
  return groups;
}

Result<std::vector<ConcurrentGroup>> concurrent_groups_of(const Program& job,
                                                          std::span<const RankId> ranks,
                                                          std::uint32_t local, CollectiveKind kind,
                                                          Bytes size, Schedules& schedules) {
  std::vector<ConcurrentGroup> concurrent_groups;
  for (const Program::Group* group : groups_of(job, ranks, local)) {
    if (group->members.size() < 2) continue;
    std::vector<DeviceId> devices = devices_of(*group);
    comm::Messages messages = TRY(schedules.messages(kind, devices, size));
    concurrent_groups.push_back({std::move(messages), std::move(devices), size});
  }
  return concurrent_groups;
}

std::uint32_t end_of_sends(const RankProgram& program, std::uint32_t first) {
  const auto dependencies = [&](std::uint32_t op) {
    return std::span(program.dependencies)
        .subspan(program.first_dependency[op],
                 program.first_dependency[op + 1] - program.first_dependency[op]);
  };
  const auto together = [&](std::uint32_t op) {
    const auto ours = dependencies(op), theirs = dependencies(first);
    const auto same_peer = [&](const program::ProgramOp& other) {
      return other.peer == program.ops[op].peer;
    };
    return program.ops[op].task == Task::kSend &&
           program.ops[op].bytes == program.ops[first].bytes && std::ranges::equal(ours, theirs) &&
           std::none_of(program.ops.begin() + first, program.ops.begin() + op, same_peer);
  };
  std::uint32_t end = first + 1;
  while (end < program.ops.size() && together(end)) ++end;
  return end;
}

std::vector<ConcurrentGroup> sends_of(const Program& job, std::span<const RankId> ranks,
                                      std::span<const std::uint32_t> peers, Bytes size) {
  std::vector<ConcurrentGroup> concurrent_groups;
  for (const RankId rank : ranks)
    for (const std::uint32_t peer : peers)
      concurrent_groups.push_back(
          {{one_message()},
           {DeviceId(rank.index()), DeviceId(job.peers_of[rank.index()][peer].index())},
           size});
  return concurrent_groups;
}

}  // namespace rehearse::job
