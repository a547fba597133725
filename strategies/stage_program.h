// The program of a stage: the ops of its ranks in a step, in issue order.
#pragma once

#include <span>
#include <vector>

#include "sim/program/program.h"
#include "strategies/boundaries.h"
#include "strategies/job_of_layout.h"
#include "strategies/stage_groups.h"

namespace rehearse::strategies {

struct StageProgram {
  program::RankProgram program;
  std::vector<GroupKind> groups;  ///< by the number that the program uses
  /// The stages that it exchanges data with. Their ranks are its peers, followed by the servers.
  std::vector<std::uint32_t> stages;
};

/// Names and origins of its ops go to `whole`. Only crossings of the layout that begin or end on
/// the stage are used. Fails as job_of does.
Result<StageProgram> stage_program(const workload::Layout& layout, std::uint32_t stage,
                                   std::span<const Crossing> crossings, const KindPrice& price,
                                   const JobOptions& options, program::Program& whole);

}  // namespace rehearse::strategies
