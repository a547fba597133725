// How many layers each chunk of a pipeline gets.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/workload.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

/// As the plan says, else what makes chunks of an interleaved schedule even.
LayerSplit split_for(const workload::Workload& workload, const Plan& plan);

/// Layers that `LayerSplit` shares: with kBlocks all but embedding and head (transform.h), which
/// come on top of the first and last chunk.
std::uint32_t shared_layers(const workload::Workload& workload, LayerSplit split);

/// By chunk, in the order in which activations pass them. With Plan::stages each stage takes the
/// layers that it names. Else contiguous chunks share layers:
///  - kBlocks, kLayers: as evenly as they go; what is left over goes to chunks in the middle, since
///    the first stage keeps most activations and the last has the head;
///  - kFlops: so that the largest chunk has the least matrix FLOPs, forward and backward; of such
///    divisions the one with the least sum of squares that dynamic programming finds.
/// REQUIRES: check_plan() holds.
std::vector<std::uint32_t> layers_of_chunks(const workload::Workload& workload, const Plan& plan);

}  // namespace rehearse::strategies
