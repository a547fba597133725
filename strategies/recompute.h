// Recomputation: activations dropped after forward and made again before backward (Chen et al.,
// 2016; selective: Korthikanti et al., MLSys 2023).
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Full: a layer with a declared input saves only that and runs all of forward again, including its
/// collectives; embedding and head (transform.h) save everything. Selective: saved scores are
/// dropped, and the ops marked as core run again.
/// Transient activations are unchanged.
Result<workload::Workload> recompute(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
