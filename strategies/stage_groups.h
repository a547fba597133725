// The ranks of a stage that take part in a collective.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/ids.h"

namespace rehearse::strategies {

/// Which ranks of a stage take part in a collective.
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

/// The group of which rank `first` of the stage (by its number in it) is the first member; empty
/// where it is another member of its group.
std::vector<RankId> group_from(const workload::Stage& stage, GroupKind kind, std::uint32_t first);

}  // namespace rehearse::strategies
