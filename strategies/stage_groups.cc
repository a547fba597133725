#include "strategies/stage_groups.h"

namespace rehearse::strategies {

using workload::Degrees, workload::Op, workload::Stage;

GroupKind group_kind(const Op& op) {
  switch (op.axis) {
    case workload::Axis::kTensor: return GroupKind::kTensor;
    case workload::Axis::kContext: return GroupKind::kContext;
    case workload::Axis::kExpert: return GroupKind::kExpert;
    case workload::Axis::kData: break;
  }
  return op.expert ? GroupKind::kExpertData : GroupKind::kData;
}

namespace {

/// The group for experts that are whole on each rank: the ranks that hold other experts, or the
/// same ones, among all ranks.
std::vector<RankId> of_whole_experts(const Stage& stage, GroupKind kind, std::uint32_t first) {
  const std::uint32_t experts = stage.degrees.expert;
  const bool same = kind == GroupKind::kExpertData;
  const std::uint32_t stride = same ? experts : 1;
  const std::uint32_t count = same ? stage.degrees.ranks() / experts : experts;
  if (same ? first >= experts : first % experts > 0) return {};
  std::vector<RankId> members;
  for (std::uint32_t i = 0; i < count; ++i)
    members.push_back(RankId(stage.rank(first + i * stride)));
  return members;
}

/// How a kind of group divides the ranks of a stage: it runs through all indices of some axes.
struct Grid {
  bool tensor = false, context = false;
  std::uint32_t data_stride = 1, data_count = 1;
};

Grid grid_of(GroupKind kind, const Degrees& degrees) {
  switch (kind) {
    case GroupKind::kTensor: return {.tensor = true};
    case GroupKind::kContext: return {.context = true};
    case GroupKind::kExpert: return {.data_count = degrees.expert};
    case GroupKind::kData: return {.context = true, .data_count = degrees.data};
    case GroupKind::kExpertData: break;
  }
  return {
      .context = true, .data_stride = degrees.expert, .data_count = degrees.data / degrees.expert};
}

}  // namespace

std::vector<RankId> group_from(const Stage& stage, GroupKind kind, std::uint32_t first) {
  const Degrees& d = stage.degrees;
  if (d.whole_experts && (kind == GroupKind::kExpert || kind == GroupKind::kExpertData))
    return of_whole_experts(stage, kind, first);
  const Grid grid = grid_of(kind, d);
  const std::uint32_t tensor = first % d.tensor, context = first / d.tensor % d.context,
                      data = first / d.tensor / d.context;
  if ((grid.tensor && tensor > 0) || (grid.context && context > 0) ||
      data % (grid.data_stride * grid.data_count) >= grid.data_stride)
    return {};
  std::vector<RankId> members;
  for (std::uint32_t i = 0; i < grid.data_count; ++i)
    for (std::uint32_t c = 0; c < (grid.context ? d.context : 1); ++c)
      for (std::uint32_t t = 0; t < (grid.tensor ? d.tensor : 1); ++t)
        members.push_back(
            RankId(stage.rank(first + t + (c + i * grid.data_stride * d.context) * d.tensor)));
  return members;
}

}  // namespace rehearse::strategies
