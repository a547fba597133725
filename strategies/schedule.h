// The order in which a pipeline stage runs the passes of its microbatches.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/layout.h"
#include "strategies/layout_transform.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

struct PipelineShape {
  std::uint32_t stages;
  std::uint32_t microbatches;
  std::uint32_t chunks = 1;  ///< per stage; REQUIRES, above 1: microbatches a multiple of stages
};

/// The order of stage `stage`, counted from 0:
///  - gpipe: all forwards, then all backwards (Huang et al., NeurIPS 2019);
///  - 1f1b: as many forwards ahead as there are later stages, then one backward for each forward
///    (Narayanan et al., SOSP 2019); with chunks, interleaved as Megatron-LM does (SC21): groups of
///    `stages` microbatches pass chunk by chunk, (stages − stage − 1)·2 + (chunks − 1)·stages
///    forwards ahead;
///  - zero_bubble: ZB-H1 (Qi et al., ICLR 2024): 1f1b with the gradients of weights of a microbatch
///    `stage` backwards later, so that no stage holds more activations than the first of 1f1b;
///  - shifted_critical_path: 1f1b; the activations of a backward are recomputed before it, while
///    its gradient may still be in transit (Lai et al., Merak, TPDS 2023); `recomputes` states that
///    this stage recomputes.
std::vector<workload::Slot> order_of(Schedule schedule, const PipelineShape& shape,
                                     std::uint32_t stage, bool recomputes = false);

/// Sets the orders of all stages. Fails for zero_bubble where no op is marked as the gradient of
/// weights: there would be nothing to put off.
Result<workload::Layout> order_stages(workload::Layout layout, const JobSetting& setting);

/// Fails unless the order of a stage has every pass of this many microbatches through each of its
/// chunks exactly once.
Status check_order(const workload::Stage& stage, std::uint32_t microbatches);

}  // namespace rehearse::strategies
