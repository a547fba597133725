#include "models/job/family_members.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace rehearse::job {

using graph::Job;
using graph::Program;
using graph::Task;

std::vector<DeviceId> devices_of(const Job::Group& group) {
  std::vector<DeviceId> devices;
  devices.reserve(group.members.size());
  for (const RankId rank : group.members) devices.push_back(DeviceId(rank.index()));
  return devices;
}

std::vector<std::vector<RankId>> ranks_of_programs(const Job& job) {
  std::vector<std::vector<RankId>> ranks(job.programs.size());
  for (std::uint32_t r = 0; r < job.ranks(); ++r) ranks[job.program_of[r]].push_back(RankId(r));
  return ranks;
}

namespace {

bool communicates(const graph::ProgramOp& op) {
  return op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
}

bool communicate_alike(const Program& a, const Program& b) {
  const auto alike = [](const graph::ProgramOp& x, const graph::ProgramOp& y) {
    return x.task == y.task &&
           (!communicates(x) ||
            std::tie(x.bytes, x.collective, x.group, x.peer, x.tag, x.priority) ==
                std::tie(y.bytes, y.collective, y.group, y.peer, y.tag, y.priority));
  };
  return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), alike) &&
         a.dependencies == b.dependencies && a.first_dependency == b.first_dependency;
}

}  // namespace

std::vector<std::vector<RankId>> ranks_of_stages(const Job& job) {
  std::vector<std::uint32_t> stage(job.programs.size());
  std::iota(stage.begin(), stage.end(), 0U);
  std::vector<std::set<std::uint32_t>> meets(job.programs.size());
  for (const Job::Group& group : job.groups) {
    std::set<std::uint32_t> programs;
    for (const RankId member : group.members) programs.insert(job.program_of[member.index()]);
    for (const std::uint32_t p : programs) meets[p].insert(programs.begin(), programs.end());
  }
  // Those that send to one program, or get from it, by one number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint32_t>> partners;
  for (std::uint32_t r = 0; r < job.peers_of.size(); ++r)
    for (std::uint32_t k = 0; k < job.peers_of[r].size(); ++k)
      partners[{k, job.program_of[job.peers_of[r][k].index()]}].insert(job.program_of[r]);
  for (auto& [partner, programs] : partners) meets.push_back(std::move(programs));
  for (const std::set<std::uint32_t>& programs : meets)
    for (auto p = programs.begin(); p != programs.end(); ++p)
      for (auto q = std::next(p); q != programs.end(); ++q) {
        if (stage[*p] == stage[*q] || !communicate_alike(job.programs[*p], job.programs[*q]))
          continue;
        const std::uint32_t from = stage[*q], to = stage[*p];
        for (std::uint32_t& s : stage)
          if (s == from) s = to;
      }
  std::vector<std::vector<RankId>> all(job.programs.size());
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    all[stage[job.program_of[r]]].push_back(RankId(r));
  std::vector<std::vector<RankId>> ranks;
  for (const std::uint32_t s : stage) ranks.push_back(all[s]);
  return ranks;
}

std::vector<const Job::Group*> groups_of(const Job& job, std::span<const RankId> ranks,
                                         std::uint32_t local) {
  std::vector<const Job::Group*> groups;
  std::vector<bool> seen(job.groups.size(), false);
  for (const RankId rank : ranks) {
    const std::uint32_t group = job.groups_of[rank.index()][local];
    if (!seen[group]) groups.push_back(&job.groups[group]);
    seen[group] = true;
  }
  return groups;
}

Result<std::vector<Meeting>> meetings_of(const Job& job, std::span<const RankId> ranks,
                                         std::uint32_t local, CollectiveKind kind, Bytes size,
                                         Schedules& schedules) {
  std::vector<Meeting> meetings;
  for (const Job::Group* group : groups_of(job, ranks, local)) {
    if (group->members.size() < 2) continue;
    std::vector<DeviceId> devices = devices_of(*group);
    const auto lanes = schedules.lanes(kind, devices);
    if (!lanes) return forward(lanes);
    meetings.push_back({*lanes, std::move(devices), size});
  }
  return meetings;
}

std::uint32_t end_of_sends(const Program& program, std::uint32_t first) {
  const auto dependencies = [&](std::uint32_t op) {
    return std::span(program.dependencies)
        .subspan(program.first_dependency[op],
                 program.first_dependency[op + 1] - program.first_dependency[op]);
  };
  const auto together = [&](std::uint32_t op) {
    const auto ours = dependencies(op), theirs = dependencies(first);
    const auto same_peer = [&](const graph::ProgramOp& other) {
      return other.peer == program.ops[op].peer;
    };
    return program.ops[op].task == Task::kSend &&
           program.ops[op].bytes == program.ops[first].bytes &&
           std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()) &&
           std::none_of(program.ops.begin() + first, program.ops.begin() + op, same_peer);
  };
  std::uint32_t end = first + 1;
  while (end < program.ops.size() && together(end)) ++end;
  return end;
}

std::vector<Meeting> sends_of(const Job& job, std::span<const RankId> ranks,
                              std::span<const std::uint32_t> peers, Bytes size) {
  std::vector<Meeting> meetings;
  for (const RankId rank : ranks)
    for (const std::uint32_t peer : peers)
      meetings.push_back(
          {one_message(),
           {DeviceId(rank.index()), DeviceId(job.peers_of[rank.index()][peer].index())},
           size});
  return meetings;
}

}  // namespace rehearse::job
