#include "strategies/job_of_layout.h"

#include <fmt/core.h>

#include "strategies/stage_program.h"

namespace rehearse::strategies {

using graph::Job;
using workload::Degrees;
using workload::Layout;
using workload::Stage;

namespace {

/// Ranks of a stage that form a group: `count` of them, `stride` apart.
struct Grid {
  std::uint32_t stride, count;
};

Grid grid_of(GroupKind kind, const Degrees& degrees) {
  const std::uint32_t row = degrees.tensor * degrees.context;
  switch (kind) {
    case GroupKind::kTensor:
      return {1, degrees.tensor};
    case GroupKind::kContext:
      return {degrees.tensor, degrees.context};
    case GroupKind::kExpert:
      return {row, degrees.expert};
    case GroupKind::kData:
      return {row, degrees.data};
    case GroupKind::kExpertData:
      break;
  }
  return {row * degrees.expert, degrees.data / degrees.expert};
}

/// The groups of one kind of a stage; ranks get theirs.
void add_groups(Job& job, const Stage& stage, GroupKind kind) {
  const Grid grid = grid_of(kind, stage.degrees);
  const std::uint32_t ranks = stage.degrees.ranks(), block = grid.stride * grid.count;
  const std::string_view what = kGroupKindNames[static_cast<std::size_t>(kind)];
  for (std::uint32_t first = 0; first < ranks; ++first) {
    if (first % block >= grid.stride) continue;
    Job::Group& group = job.groups.emplace_back();
    group.name = fmt::format("{} {}[{}]", stage.name, what, first);
    group.members.reserve(grid.count);
    for (std::uint32_t i = 0; i < grid.count; ++i) {
      const std::uint32_t rank = stage.first_rank + first + i * grid.stride;
      group.members.push_back(RankId(rank));
      job.groups_of[rank].push_back(static_cast<std::uint32_t>(job.groups.size() - 1));
    }
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
  const Result<std::vector<Crossing>> crossings = crossings_of(layout, options.boundary);
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
