#include "profiler/replay/recorded_groups.h"

#include <algorithm>

#include "profiler/replay/transfers.h"

namespace rehearse::replay {

std::uint32_t RecordedGroups::add(std::size_t rank, std::vector<RankId> members,
                                  const Recording& recording, const CommunicationOp& op) {
  const std::string name =
      op.what && op.what->group ? std::string(recording.name(*op.what->group)) : "communication";
  const std::uint32_t ranks = ranks_of(recording, op).value_or(0);
  const auto [known, added] =
      known_.try_emplace({name, members, ranks}, static_cast<std::uint32_t>(known_.size()));
  if (added) program_.groups.push_back({name, std::move(members), ranks});
  std::vector<std::uint32_t>& of_rank = program_.groups_of[rank];
  const auto local = std::ranges::find(of_rank, known->second);
  const auto number = static_cast<std::uint32_t>(local - of_rank.begin());
  if (local == of_rank.end()) of_rank.push_back(known->second);
  return number;
}

}  // namespace rehearse::replay
