#include "strategies/job_of_layout.h"

#include <optional>
#include <utility>

#include <fmt/core.h>

#include "strategies/server_program.h"
#include "strategies/stage_program.h"

namespace rehearse::strategies {

using program::Program, workload::Degrees, workload::Layout, workload::Stage;

namespace {

/// The groups of one kind of a stage; ranks get theirs.
void add_groups(Program& job, const Stage& stage, GroupKind kind) {
  const std::string_view what = kGroupKindNames[static_cast<std::size_t>(kind)];
  for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
    std::vector<RankId> members = group_from(stage, kind, r);
    if (members.empty()) continue;
    const auto number = static_cast<std::uint32_t>(job.groups.size());
    for (const RankId member : members) job.groups_of[member.index()].push_back(number);
    job.groups.push_back({fmt::format("{} {}[{}]", stage.name, what, r), std::move(members)});
  }
}

void add_peers(Program& job, const Layout& layout, const Stage& stage,
               const std::vector<std::uint32_t>& others) {
  for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
    std::vector<RankId>& peers = job.peers_of[stage.rank(r)];
    for (const std::uint32_t other : others)
      for (const std::uint32_t rank : partners(stage.degrees, r, layout.stages[other].degrees))
        peers.push_back(RankId(layout.stages[other].rank(rank)));
    if (layout.servers)
      for (std::uint32_t i = 0; i < layout.servers->count; ++i)
        peers.push_back(RankId(layout.servers->first_rank + i));
  }
}

/// Adds a program for those of the ranks that are on that kind of device.
void add_program(Program& job, program::RankProgram program, const Prices& prices,
                 std::uint32_t kind, const std::vector<std::uint32_t>& ranks) {
  const auto number = static_cast<std::uint32_t>(job.programs.size());
  job.programs.push_back(std::move(program));
  for (const std::uint32_t rank : ranks)
    if (prices.kind_of(rank) == kind) job.program_of[rank] = number;
}

/// All servers of a kind do the same, with all workers.
void add_servers(Program& job, const Layout& layout, const Prices& prices,
                 const JobOptions& options) {
  const workload::Servers& servers = *layout.servers;
  const std::vector<std::uint32_t> ranks = ranks_of(servers);
  for (const std::uint32_t kind : kinds_of(prices, ranks))
    add_program(job, server_program(layout, prices.of_kind(kind).op, options.steps, job), prices,
                kind, ranks);
  for (std::uint32_t i = 0; i < servers.count; ++i) {
    const std::uint32_t rank = servers.first_rank + i;
    for (std::uint32_t worker = 0; worker < servers.first_rank; ++worker)
      job.peers_of[rank].push_back(RankId(worker));
  }
}

}  // namespace

HostTimes host_times(const JobOptions& options, const Degrees& degrees, std::size_t stages) {
  const host::Sends sends = stages < 2         ? host::Sends::kNone
                            : options.over_efa ? host::Sends::kEfa
                                               : host::Sends::kLinks;
  return {options.host_per_kernel, host::block_times(options.host, degrees.tensor, sends),
          options.blocking};
}

Seconds fixed_of(const JobOptions& options, const Stage& stage) {
  std::uint32_t blocks = 0;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers)
      if (layer.host_work > 0) blocks += layer.count;
  return options.fixed + options.fixed_of_block * blocks;
}

Result<Program> job_of(const Layout& layout, const Prices& prices, const JobOptions& options) {
  const std::vector<Crossing> crossings = TRY(crossings_of(layout));
  Program job;
  const std::uint32_t ranks = layout.ranks();
  job.program_of.resize(ranks);
  job.groups_of.resize(ranks);
  job.peers_of.resize(ranks);
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s) {
    const Stage& stage = layout.stages[s];
    // Programs of one stage differ only in their durations.
    std::optional<StageProgram> program;
    const std::vector<std::uint32_t> own = ranks_of(stage);
    for (const std::uint32_t kind : kinds_of(prices, own)) {
      StageProgram one =
          TRY(stage_program(layout, s, crossings, prices.of_kind(kind), options, job));
      add_program(job, std::move(one.program), prices, kind, own);
      program = std::move(one);
    }
    for (const GroupKind kind : program->groups) add_groups(job, stage, kind);
    add_peers(job, layout, stage, program->stages);
  }
  if (layout.servers) add_servers(job, layout, prices, options);
  return job;
}

}  // namespace rehearse::strategies
