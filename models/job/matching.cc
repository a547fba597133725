#include "models/job/matching.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::job {

using graph::Job;
using graph::ProgramOp;

namespace {

/// To the byte: a rounded size would show two different ones as equal.
std::string exactly(Bytes bytes) { return fmt::format("{:.0f} B", bytes.b()); }

std::uint32_t rank_of(OpId op, std::span<const std::uint32_t> first_op) {
  const auto next = std::upper_bound(first_op.begin(), first_op.end(), op.index());
  return static_cast<std::uint32_t>(next - first_op.begin() - 1);
}

}  // namespace

Status Matching::add_collective(std::uint32_t group, std::uint32_t index, const ProgramOp& op,
                                RankId rank, OpId id) {
  std::vector<std::uint32_t>& of_group = instances_[group];
  if (index == of_group.size()) {
    of_group.push_back(static_cast<std::uint32_t>(collectives_.size()));
    collectives_.push_back({op.collective, op.bytes, group, op.priority, {}});
    first_ranks_.push_back(rank);
  }
  Collective& collective = collectives_[of_group[index]];
  if (collective.kind != op.collective || collective.bytes != op.bytes)
    return fail(
        fmt::format("process group '{}': its collective {} is {} of {} on rank {} and {} of "
                    "{} on rank {}",
                    job_.groups[group].name, index, to_string(collective.kind),
                    exactly(collective.bytes), first_ranks_[of_group[index]].index(),
                    to_string(op.collective), exactly(op.bytes), rank.index()),
        "members that issue the same collectives in the same order");
  collective.members.push_back(id);
  return {};
}

void Matching::add_send(RankId rank, const ProgramOp& op, OpId id) {
  sends_[{rank.index(), op.peer, op.tag}].push_back({id, op.bytes});
}

void Matching::add_receive(RankId rank, const ProgramOp& op, OpId id) {
  receives_[{op.peer, rank.index(), op.tag}].push_back({id, op.bytes});
}

Status Matching::check_members(std::span<const std::uint32_t> first_op) {
  std::vector<std::uint32_t> place(job_.ranks(), 0);
  for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
    const Job::Group& group = job_.groups[g];
    const bool in_order = std::is_sorted(group.members.begin(), group.members.end());
    for (const std::uint32_t index : instances_[g]) {
      std::vector<OpId>& members = collectives_[index].members;
      if (members.size() != group.members.size()) return missing(g, index, first_op);
      if (in_order) continue;  // as ranks were added
      for (std::size_t i = 0; i < group.members.size(); ++i)
        place[group.members[i].index()] = static_cast<std::uint32_t>(i);
      std::vector<OpId> sorted(members.size(), OpId(0));
      for (const OpId member : members) sorted[place[rank_of(member, first_op)]] = member;
      members = std::move(sorted);
    }
  }
  return {};
}

tl::unexpected<Error> Matching::missing(std::uint32_t g, std::uint32_t index,
                                        std::span<const std::uint32_t> first_op) const {
  const Job::Group& group = job_.groups[g];
  const Collective& collective = collectives_[index];
  std::vector<char> came(job_.ranks(), 0);
  for (const OpId member : collective.members) came[rank_of(member, first_op)] = 1;
  const auto absent = std::find_if(group.members.begin(), group.members.end(), [&](RankId rank) {
    return rank.index() >= job_.ranks() || !came[rank.index()];
  });
  const auto number = std::find(instances_[g].begin(), instances_[g].end(), index);
  return fail(
      fmt::format("process group '{}': rank {} never comes to its collective {}, {} of {} on rank "
                  "{}",
                  group.name, absent->index(), number - instances_[g].begin(),
                  to_string(collective.kind), exactly(collective.bytes),
                  first_ranks_[index].index()),
      "members that issue the same collectives in the same order");
}

Result<std::vector<graph::Edge>> Matching::messages() const {
  const auto describe = [](const Channel& c) {
    return fmt::format("from rank {} to rank {} with tag {}", std::get<0>(c), std::get<1>(c),
                       std::get<2>(c));
  };
  std::vector<graph::Edge> edges;
  for (const auto& [channel, sends] : sends_) {
    const auto found = receives_.find(channel);
    const std::size_t received = found == receives_.end() ? 0 : found->second.size();
    if (received != sends.size())
      return fail(fmt::format("{} messages {}, of which {} are received", sends.size(),
                              describe(channel), received),
                  "a receive for every send");
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (sends[i].bytes != found->second[i].bytes)
        return fail(fmt::format("message {} {} has {} and its receive {}", i, describe(channel),
                                exactly(sends[i].bytes), exactly(found->second[i].bytes)));
      edges.push_back({sends[i].op, found->second[i].op});
    }
  }
  for (const auto& [channel, receives] : receives_)
    if (!sends_.contains(channel))
      return fail(fmt::format("{} receives of messages {}, which are never sent", receives.size(),
                              describe(channel)),
                  "a send for every receive");
  return edges;
}

}  // namespace rehearse::job
