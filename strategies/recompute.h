// Recomputation: activations dropped after forward and made again before backward (Chen et al.,
// 2016; selective: Korthikanti et al., MLSys 2023).
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Full: a layer that says what its input is keeps that alone and runs all of forward again, its
/// collectives included; embedding and head (transform.h) keep everything. Selective: where scores
/// are kept, they are dropped, and the ops marked as core run again.
/// Transient activations stay as they are.
Result<workload::Workload> recompute(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
