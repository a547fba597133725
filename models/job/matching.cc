#include <algorithm>

#include <fmt/core.h>

#include "models/job/lower_parts.h"

namespace rehearse::job {

using program::Program;
using program::ProgramOp;

namespace {

/// To the byte: a rounded size would show two different ones as equal.
std::string exactly(Bytes bytes) { return fmt::format("{:.0f} B", bytes.b()); }

template <class Channel>
std::string between(const Channel& c) {
  return fmt::format("from rank {} to rank {} with tag {}", std::get<0>(c), std::get<1>(c),
                     std::get<2>(c));
}

std::uint32_t rank_of(OpId op, std::span<const std::uint32_t> first_op) {
  const auto next = std::ranges::upper_bound(first_op, op.index());
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
  sends_.push_back({{rank.index(), job_.peer(rank, op).index(), op.tag}, id, op.bytes});
}

void Matching::add_receive(RankId rank, const ProgramOp& op, OpId id) {
  receives_.push_back({{job_.peer(rank, op).index(), rank.index(), op.tag}, id, op.bytes});
}

Status Matching::check_members(std::span<const std::uint32_t> first_op) {
  std::vector<std::uint32_t> place(job_.ranks(), 0);
  for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
    const Program::Group& group = job_.groups[g];
    const bool in_order = std::ranges::is_sorted(group.members);
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
  const Program::Group& group = job_.groups[g];
  const Collective& collective = collectives_[index];
  std::vector<char> came(job_.ranks(), 0);
  for (const OpId member : collective.members) came[rank_of(member, first_op)] = 1;
  const auto absent = std::ranges::find_if(group.members, [&](RankId rank) {
    return rank.index() >= job_.ranks() || !came[rank.index()];
  });
  const auto number = std::ranges::find(instances_[g], index);
  return fail(
      fmt::format("process group '{}': rank {} never issues its collective {}, {} of {} on rank {}",
                  group.name, absent->index(), number - instances_[g].begin(),
                  to_string(collective.kind), exactly(collective.bytes),
                  first_ranks_[index].index()),
      "members that issue the same collectives in the same order");
}

Result<std::vector<graph::Edge>> Matching::messages() {
  const auto by_channel = [](const End& a, const End& b) { return a.channel < b.channel; };
  std::ranges::stable_sort(sends_, by_channel);
  std::ranges::stable_sort(receives_, by_channel);
  std::vector<graph::Edge> edges;
  edges.reserve(sends_.size());
  const std::size_t ends = std::max(sends_.size(), receives_.size());
  for (std::size_t i = 0; i < ends; ++i) {
    const bool sent = i < sends_.size(), received = i < receives_.size();
    if (!sent || !received || sends_[i].channel != receives_[i].channel) {
      const Channel& channel = sent && (!received || sends_[i].channel < receives_[i].channel)
                                   ? sends_[i].channel
                                   : receives_[i].channel;
      return uneven(channel);
    }
    if (sends_[i].bytes != receives_[i].bytes) {
      std::size_t first = i;
      while (first > 0 && sends_[first - 1].channel == sends_[i].channel) --first;
      return fail(fmt::format("message {} {} has {} and its receive {}", i - first,
                              between(sends_[i].channel), exactly(sends_[i].bytes),
                              exactly(receives_[i].bytes)));
    }
    edges.push_back({sends_[i].op, receives_[i].op});
  }
  return edges;
}

tl::unexpected<Error> Matching::uneven(const Channel& channel) const {
  const auto of_channel = [&](const End& end) { return end.channel == channel; };
  const auto sent = std::ranges::count_if(sends_, of_channel);
  const auto received = std::ranges::count_if(receives_, of_channel);
  if (sent == 0)
    return fail(
        fmt::format("{} receives of messages {}, which are never sent", received, between(channel)),
        "a send for every receive");
  return fail(fmt::format("{} messages {}, and {} are received", sent, between(channel), received),
              "a receive for every send");
}

}  // namespace rehearse::job
