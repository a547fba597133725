#include "models/job/program_ops.h"

#include <algorithm>

namespace rehearse::job {
namespace {

/// The member that arrives last, the first of several.
OpId last_of(const Collective& collective, const graph::Timeline& timeline) {
  return *std::ranges::max_element(
      collective.members, [&](OpId a, OpId b) { return timeline[a].start < timeline[b].start; });
}

}  // namespace

ProgramOps::ProgramOps(const program::Program& job, const LoweredJob& lowered,
                       const graph::Timeline& timeline, program::Interval computing,
                       program::Interval links)
    : LoweredOps(job, lowered, timeline, computing, links), job_(job), lowered_(lowered) {
  for (const Collective& collective : lowered.collectives) {
    const OpId last = last_of(collective, timeline);
    for (const OpId member : collective.members)
      if (timeline[member].start < timeline[last].start)
        last_arrival_.emplace(member.index(), last);
  }
}

OpId ProgramOps::last_arrival(OpId op) const {
  const auto later = last_arrival_.find(op.index());
  return later != last_arrival_.end() ? later->second : op;
}

Provenance ProgramOps::provenance_of(const Made& made, Provenance share) const {
  if (made.op->task == program::Task::kSend) return Provenance::kExtrapolated;
  if (made.op->task != program::Task::kCollective) return LoweredOps::provenance_of(made, share);
  const std::uint32_t rank = lowered_.ranks[made.run].index();
  const std::size_t ranks = job_.groups[job_.groups_of[rank][made.op->group]].members.size();
  const auto known = std::ranges::find_if(lowered_.pricings, [&](const Pricing& p) {
    return p.kind == made.op->collective && p.ranks == ranks;
  });
  return known != lowered_.pricings.end() && known->calibrated ? Provenance::kInterpolated
                                                               : Provenance::kExtrapolated;
}

std::vector<RankRange> occupancy(const program::Program& job, const LoweredJob& lowered,
                                 const graph::Timeline& timeline) {
  const ProgramOps ops(job, lowered, timeline);
  const program::Occupancies occupancies(lowered.graph, timeline, ops);
  std::vector<program::Occupancy> runs;
  for (std::uint32_t run = 0; run < ops.ranks(); ++run) runs.push_back(occupancies.of_run(run));
  std::vector<RankRange> ranges;
  for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) {
    const program::Occupancy& own = runs[lowered.folded ? lowered.run_of[rank] : rank];
    if (ranges.empty() || !(ranges.back().occupancy == own)) ranges.push_back({rank, 0, own});
    ++ranges.back().count;
  }
  return ranges;
}

program::Occupancy mean(const std::vector<RankRange>& ranges) {
  program::Occupancy mean;
  if (ranges.empty()) return mean;
  const double ranks = ranges.back().first + ranges.back().count;
  for (const RankRange& range : ranges) mean += range.occupancy * (range.count / ranks);
  return mean;
}

std::vector<graph::PathStep> critical_path(const program::Program& job, const LoweredJob& lowered,
                                           const graph::Timeline& timeline) {
  return program::critical_path(timeline, ProgramOps(job, lowered, timeline));
}

program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, program::Interval computing,
                              program::Interval links) {
  const ProgramOps ops(job, lowered, timeline, computing, links);
  program::PathParts parts =
      program::path_parts(program::critical_path(timeline, ops), timeline, ops);
  if (!parts.parts.empty()) parts.ends_on = lowered.ranks[parts.ends_on].index();
  return parts;
}

Seconds time_of(const Collective& collective, const graph::Timeline& timeline) {
  Picoseconds end(0);
  for (const OpId member : collective.members) end = std::max(end, timeline[member].end);
  return (end - timeline[last_of(collective, timeline)].start).seconds();
}

}  // namespace rehearse::job
