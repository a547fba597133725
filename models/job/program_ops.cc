#include "models/job/program_ops.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::job {

using program::PartKind;
using program::PathShare;
using program::Task;

ProgramOps::ProgramOps(const program::Program& job, const LoweredJob& lowered,
                       const graph::Timeline& timeline, program::Interval computing,
                       program::Interval links)
    : LoweredOps(job, lowered, timeline),
      job_(job),
      lowered_(lowered),
      computing_(computing),
      links_(links) {}

std::optional<Picoseconds> ProgramOps::alone(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return std::nullopt;
  const Task task = made->op->task;
  const bool works = task == Task::kCompute || task == Task::kHost || task == Task::kMemory;
  return works ? made->op->duration : std::nullopt;
}

std::uint64_t ProgramOps::alike(OpId op) const {
  constexpr std::uint64_t kMessage = std::uint64_t{3} << 62, kPlain = std::uint64_t{1} << 63;
  const std::optional<Made> made = this->made(op);
  if (!made) return kMessage | op.index();
  if (made->op->origin == program::kPlainOrigin)
    return kPlain | std::uint64_t{made->program} << 32 | made->index;
  return std::uint64_t{made->op->origin} << 32 | made->op->name.index();
}

PathShare ProgramOps::message(OpId op) const {
  return {.kind = PartKind::kCommunication,
          .part = "sends between ranks",
          .op = std::string(lowered_.graph.name(op)),
          .low = links_.low,
          .high = links_.high,
          .provenance = Provenance::kExtrapolated};
}

PathShare ProgramOps::slowed(OpId op) const {
  PathShare share = message(op);
  share.part = "computing slowed by concurrent communication";
  return share;
}

PathShare ProgramOps::plain(const Made& made, PartKind kind, std::string_view part) const {
  return {.kind = kind,
          .part = std::string(part),
          .op = std::string(job_.names[made.op->name]),
          .low = computing_.low,
          .high = computing_.high,
          .provenance = made.op->provenance};
}

Provenance ProgramOps::provenance_of(const Made& made) const {
  const std::uint32_t rank = lowered_.ranks[made.run].index();
  const std::size_t ranks = job_.groups[job_.groups_of[rank][made.op->group]].members.size();
  const auto known = std::find_if(
      lowered_.pricings.begin(), lowered_.pricings.end(),
      [&](const Pricing& p) { return p.kind == made.op->collective && p.ranks == ranks; });
  return known != lowered_.pricings.end() && known->calibrated ? Provenance::kInterpolated
                                                               : Provenance::kExtrapolated;
}

std::vector<PathShare> ProgramOps::shares(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return {message(op)};
  const Task task = made->op->task;
  if (made->op->origin == program::kPlainOrigin) switch (task) {
      case Task::kCompute:
        return {plain(*made, PartKind::kCompute, "compute")};
      case Task::kMemory:
        return {plain(*made, PartKind::kMemory, "loads and stores")};
      case Task::kHost:
        return {plain(*made, PartKind::kHost, "host")};
      case Task::kCollective: {
        PathShare share = message(op);
        share.part = to_string(made->op->collective);
        share.provenance = provenance_of(*made);
        return {share};
      }
      case Task::kSend:
      default:
        return {message(op)};
    }
  std::vector<PathShare> shares;
  const auto text = [&](NameId name) { return std::string(job_.names[name]); };
  for (const program::Share& share : job_.origins[made->op->origin]) {
    const bool links = share.kind == PartKind::kCommunication || share.kind == PartKind::kMemory;
    const program::Interval interval = share.interval.value_or(links ? links_ : computing_);
    std::string what = text(share.what.value_or(made->op->name));
    if (share.detail) what = fmt::format("{}, {}", what, text(*share.detail));
    shares.push_back(
        {.kind = share.kind,
         .part = text(share.part),
         .op = std::move(what),
         .weight = share.weight,
         .low = interval.low,
         .high = interval.high,
         .provenance = task == Task::kCollective ? provenance_of(*made) : share.provenance});
  }
  return shares;
}

std::vector<program::Occupancy> occupancy(const program::Program& job, const LoweredJob& lowered,
                                          const graph::Timeline& timeline) {
  const ProgramOps ops(job, lowered, timeline);
  const program::Occupancies occupancies(lowered.graph, timeline, ops);
  std::vector<program::Occupancy> ranks;
  for (std::uint32_t rank = 0; rank < ops.ranks(); ++rank)
    ranks.push_back(occupancies.of_run(rank));
  return ranks;
}

program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, program::Interval computing,
                              program::Interval links) {
  const ProgramOps ops(job, lowered, timeline, computing, links);
  program::PathParts parts =
      program::path_parts(graph::critical_path(timeline), timeline, ops, ops);
  if (!parts.parts.empty()) parts.ends_on = lowered.ranks[parts.ends_on].index();
  return parts;
}

Seconds time_of(const Collective& collective, const graph::Timeline& timeline) {
  Picoseconds last(0), end(0);
  for (const OpId member : collective.members) {
    last = std::max(last, timeline[member].start);
    end = std::max(end, timeline[member].end);
  }
  return (end - last).seconds();
}

}  // namespace rehearse::job
