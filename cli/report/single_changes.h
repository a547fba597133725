// Single changes of a job's plan, training, launches or links, each predicted separately.
#pragma once

#include <string>
#include <vector>

#include "cli/output/value.h"
#include "models/input/pipeline.h"
#include "models/memory/memory.h"
#include "sim/base/progress.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

struct SingleChange {
  std::string change;  ///< for people: "microbatch 4", "links pcie4_x16 twice as fast"
  Seconds step = Seconds::s(0);
  memory::StageMemory memory;  ///< of the fullest stage with the change
};

/// Returns the changes that shorten the step by more than 0.2 %, the most effective first; their
/// memory says whether they fit. Changes that do not suit the workload are left out. Fails only if
/// `progress` asks to stop.
Result<std::vector<SingleChange>> single_changes(const step::Spec& spec,
                                                 const cluster::Cluster& cluster,
                                                 const std::optional<input::Pipeline>& input,
                                                 const step::Step& step, step::Fidelity fidelity,
                                                 const Progress& progress);

/// Rows for the page: `change`, `step_s`, `gain` (share of the step), `memory_b`, `usable_b`,
/// `fits`.
Json changes_json(const std::vector<SingleChange>& changes, Seconds step);
/// One row per change: `change`, `step_time`, `gain` (share of the step), `memory`, `usable`,
/// `fits`.
Value change_rows(const std::vector<SingleChange>& changes, const Estimate<Seconds>& step);

}  // namespace rehearse::cli
