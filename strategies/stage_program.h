// The program of a stage: what its ranks do in a step, in their order of issue.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/graph/job.h"
#include "strategies/boundaries.h"

namespace rehearse::strategies {

/// Which ranks of a stage take part in a collective.
enum class GroupKind : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kData,
  kExpertData,  ///< of those with the same experts
};
inline constexpr std::size_t kGroupKinds = 5;
inline constexpr std::string_view kGroupKindNames[kGroupKinds] = {"tensor", "context", "expert",
                                                                  "data", "expert data"};

GroupKind group_kind(const workload::Op& op);
/// How many ranks such a group has.
std::uint32_t ranks_of(GroupKind kind, const workload::Degrees& degrees);

struct StageProgram {
  graph::Program program;
  std::vector<GroupKind> groups;      ///< by the number that the program uses
  std::vector<std::uint32_t> stages;  ///< that it exchanges with; their ranks are its peers
};

/// Crossings of the layout that begin or end on the stage are those that count. Fails as job_of
/// does.
Result<StageProgram> stage_program(const workload::Layout& layout, std::uint32_t stage,
                                   std::span<const Crossing> crossings, const Price& price,
                                   const JobOptions& options, NamePool& names);

}  // namespace rehearse::strategies
