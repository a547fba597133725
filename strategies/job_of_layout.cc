#include "strategies/job_of_layout.h"

#include <fmt/core.h>

#include "strategies/stage_program.h"

namespace rehearse::strategies {

using graph::Job;
using workload::Degrees;
using workload::Layout;
using workload::Stage;

namespace {

/// The groups of one kind of a stage; ranks get theirs.
void add_groups(Job& job, const Stage& stage, GroupKind kind) {
  const std::string_view what = kGroupKindNames[static_cast<std::size_t>(kind)];
  for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
    std::vector<RankId> members = group_from(stage, kind, r);
    if (members.empty()) continue;
    const auto number = static_cast<std::uint32_t>(job.groups.size());
    for (const RankId member : members) job.groups_of[member.index()].push_back(number);
    job.groups.push_back(
        {fmt::format("{} {}[{}]", stage.name, what, r), std::move(members)});
  }
}

void add_peers(Job& job, const Layout& layout, const Stage& stage,
               const std::vector<std::uint32_t>& others) {
  for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
    std::vector<RankId>& peers = job.peers_of[stage.first_rank + r];
    for (const std::uint32_t other : others)
      for (const std::uint32_t rank : partners(stage.degrees, r, layout.stages[other].degrees))
        peers.push_back(RankId(layout.stages[other].first_rank + rank));
  }
}

}  // namespace

Result<Job> job_of(const Layout& layout, const Price& price, const JobOptions& options) {
  const Result<std::vector<Crossing>> crossings = crossings_of(layout);
  if (!crossings) return forward(crossings);
  Job job;
  const std::uint32_t ranks = layout.ranks();
  job.program_of.resize(ranks);
  job.groups_of.resize(ranks);
  job.peers_of.resize(ranks);
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s) {
    const Stage& stage = layout.stages[s];
    Result<StageProgram> program = stage_program(layout, s, *crossings, price, options, job.names);
    if (!program) return forward(program);
    job.programs.push_back(std::move(program->program));
    for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r)
      job.program_of[stage.first_rank + r] = s;
    for (const GroupKind kind : program->groups) add_groups(job, stage, kind);
    add_peers(job, layout, stage, program->stages);
  }
  return job;
}

}  // namespace rehearse::strategies
