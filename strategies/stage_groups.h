// The ranks of a stage that take part in a collective.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/ids.h"

namespace rehearse::strategies {

/// The ranks of a stage that take part in a collective.
enum class GroupKind : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kData,
  kExpertData,  ///< ranks with the same experts
};
inline constexpr std::size_t kGroupKinds = 5;
inline constexpr std::string_view kGroupKindNames[kGroupKinds] = {"tensor", "context", "expert",
                                                                  "data", "expert data"};

GroupKind group_kind(const workload::Op& op);

/// The group whose first member is rank `first` of the stage (by its number in it); empty if that
/// rank is another member of its group.
std::vector<RankId> group_from(const workload::Stage& stage, GroupKind kind, std::uint32_t first);

}  // namespace rehearse::strategies
