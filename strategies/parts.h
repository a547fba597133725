// Parts: work divided into parts that take turns, so that communication of one runs while others
// compute (docs/concepts/parts.md). Smaller kernels and their launches are priced as any others.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides each exchange of tokens, with the experts' products up to the exchange that returns
/// them, into Plan::exchange_parts (Hwang et al., Tutel, MLSys 2023).
Result<workload::Workload> exchanges_in_parts(workload::Workload workload,
                                              const RankSetting& setting);

/// Divides the microbatch in every phase of every layer into Plan::microbatch_parts (Lai et al.,
/// Merak, TPDS 2023). The last communication of a phase runs during the first ops of the next
/// layer.
Result<workload::Workload> microbatch_in_parts(workload::Workload workload,
                                               const RankSetting& setting);

}  // namespace rehearse::strategies
