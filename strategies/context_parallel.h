// Context parallelism: the tokens of a sample are cut over ranks.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides what counts tokens. Attention needs keys and values of all tokens:
///  - ring (Liu et al., Ring Attention, 2023): every rank keeps its queries; keys and values go
///    around, in backward with their gradients, beside attention. The longer of the two is what it
///    takes: the first part is there already. Causal work is taken to be balanced over ranks.
///  - all_to_all (Jacobs et al., DeepSpeed-Ulysses, 2023): before attention every rank gets all
///    tokens of its share of the heads, behind it the result goes back.
/// Keys and values count once per head that `heads` counts; with fewer "kv_heads" so many.
/// Fails for a ring around unfused attention: its scores would need all keys at once.
Result<workload::Workload> context_parallel(workload::Workload workload,
                                            const RankSetting& setting);

}  // namespace rehearse::strategies
