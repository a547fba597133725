#include <algorithm>

#include "models/job/concurrent_groups.h"
#include "models/job/lower_parts.h"

namespace rehearse::job {

using program::ProgramOp;
using program::Task;

BottleneckLinks::BottleneckLinks(const program::Program& job, Schedules& schedules,
                                 LinkPaths& paths)
    : job_(job), schedules_(schedules), paths_(paths) {}

const std::vector<RankId>& BottleneckLinks::ranks_of_stage(std::uint32_t program) {
  if (!ranks_) ranks_ = ranks_of_stages(job_);
  return (*ranks_)[program];
}

Result<BottleneckTime> BottleneckLinks::of_collective(std::uint32_t group, CollectiveKind kind) {
  const RankId first = job_.groups[group].members.front();
  const std::vector<std::uint32_t>& groups = job_.groups_of[first.index()];
  const auto local = static_cast<std::uint32_t>(std::ranges::find(groups, group) - groups.begin());
  const std::uint32_t program = job_.program_of[first.index()];
  const auto [known, fresh] = known_.try_emplace({program, local, kind}, BottleneckTime());
  if (!fresh) return known->second;
  const std::vector<ConcurrentGroup> concurrent_set = TRY(
      concurrent_groups_of(job_, ranks_of_stage(program), local, kind, Bytes::b(1), schedules_));
  return known->second = paths_.bottleneck(concurrent_set);
}

std::vector<BottleneckTime> BottleneckLinks::of_sends(std::uint32_t program) {
  const std::vector<ProgramOp>& ops = job_.programs[program].ops;
  std::vector<BottleneckTime> fullest(ops.size());
  std::map<std::vector<std::uint32_t>, BottleneckTime> known;
  for (std::uint32_t i = 0; i < ops.size();) {
    if (ops[i].task != Task::kSend) {
      ++i;
      continue;
    }
    const std::uint32_t end = end_of_sends(job_.programs[program], i);
    std::vector<std::uint32_t> peers;
    for (std::uint32_t s = i; s < end; ++s) peers.push_back(ops[s].peer);
    auto found = known.find(peers);
    if (found == known.end()) {
      const BottleneckTime time =
          paths_.bottleneck(sends_of(job_, ranks_of_stage(program), peers, Bytes::b(1)));
      found = known.emplace(std::move(peers), time).first;
    }
    for (; i < end; ++i) fullest[i] = found->second;
  }
  return fullest;
}

}  // namespace rehearse::job
