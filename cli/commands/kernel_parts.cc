#include "cli/commands/kernel_parts.h"

#include <map>

#include "models/workload/lift_operands.h"

namespace rehearse::cli {
namespace {

using workload::lifting::Role;

/// Empty if the operator's name says nothing about its role.
std::string_view words_for(Role role) {
  switch (role) {
    case Role::kConvolution:
      return "convolutions";
    case Role::kLinear:
    case Role::kMatrix:
      return "matrix products";
    case Role::kAttention:
      return "attention";
    case Role::kNorm:
      return "norms";
    case Role::kSoftmax:
      return "softmax";
    case Role::kGather:
      return "table look-ups";
    case Role::kPool:
      return "pooling";
    case Role::kPlain:
      break;
  }
  return "";
}

/// The role of a kernel, from the operator that launched it.
std::string_view kind_of_kernel(const replay::Recording& recording, std::uint32_t row) {
  for (auto op = recording.launcher(row); op; op = recording.parent(*op))
    if (const auto words =
            words_for(workload::lifting::role_of(recording.name(recording.host(*op))));
        !words.empty())
      return words;
  return "other kernels";
}

}  // namespace

void name_kernels(const std::vector<replay::Recording>& recordings,
                  replay::RecordedProgram& program) {
  std::map<std::string_view, std::uint32_t> origins;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    program::RankProgram& of = program.programs[rank];
    for (replay::OpIndex i = 0; i < of.ops.size(); ++i) {
      if (of.ops[i].task != program::Task::kCompute) continue;
      const std::string_view kind = kind_of_kernel(recordings[rank], *of.recorded[i].row);
      const auto next = static_cast<std::uint32_t>(program.origins.size());
      const auto [known, fresh] = origins.try_emplace(kind, next);
      if (fresh)
        program.origins.push_back({{.kind = program::PartKind::kCompute,
                                    .part = program.names.intern(kind),
                                    .provenance = Provenance::kRecorded}});
      of.ops[i].origin = known->second;
    }
  }
}

}  // namespace rehearse::cli
