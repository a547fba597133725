// The number of layers of each chunk of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/workload.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

/// As given in the plan, otherwise the split that makes chunks of an interleaved schedule even.
LayerSplit split_for(const workload::Workload& workload, const Plan& plan);

/// The layers that `LayerSplit` shares. With kBlocks these are all but embedding and head
/// (transform.h), which are added to the first and last chunk.
std::uint32_t shared_layers(const workload::Workload& workload, LayerSplit split);

/// By chunk, in the order in which activations pass them. With Plan::stages each stage has the
/// layers that it names. Otherwise contiguous chunks share layers:
///  - kBlocks, kLayers: as evenly as possible; the remainder goes to chunks in the middle, because
///    the first stage saves most activations and the last has the head;
///  - kFlops: minimizes the matrix FLOPs of the largest chunk, forward and backward, and among
///    those divisions the sum of squares, by dynamic programming.
/// REQUIRES: check_plan() holds.
std::vector<std::uint32_t> layers_of_chunks(const workload::Workload& workload, const Plan& plan);

/// A number of layers from a run of equal layers of the workload.
struct LayerPart {
  std::uint32_t layer;  ///< in Workload::layers
  std::uint32_t count;
};
/// By chunk, the layers that layers_of_chunks() gives it, runs kept together.
std::vector<std::vector<LayerPart>> parts_of_chunks(const workload::Workload& workload,
                                                    const Plan& plan);

}  // namespace rehearse::strategies
