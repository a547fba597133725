// ZeRO-3, which PyTorch calls FSDP (Rajbhandari et al., SC20; Zhao et al., VLDB 2023): parameters,
// gradients and the optimizer's states are all sharded over the ranks that hold the same.
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Each layer gathers its weights before forward and again before backward (or before its
/// recomputation), and scatters the sums of its gradients afterwards, in every microbatch.
/// With overlap, weights arrive while the previous layer runs, and only the optimizer waits for
/// gradients.
///
/// Stage::gathering: the weights of the running layer and of the next, the gradients of one; by
/// tensor, those of one matrix (Layer::gathered_at_once).
///
/// In a pipeline, weights stay gathered for the step and gradients stay whole, as in PyTorch: both
/// are sent once per step, and Stage::gathered contains all of them.
Result<workload::Layout> shard_parameters(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
