// Context parallelism: the tokens of a sample are divided over ranks.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides extents that count tokens. Attention needs keys and values of all tokens:
///  - ring (Liu et al., Ring Attention, 2023): every rank keeps its queries. Keys and values go
///    around the ring, in backward with their gradients, overlapping attention. The pair takes the
///    longer of both, because the first part is local. Causal work is assumed to be balanced.
///  - all_to_all (Jacobs et al., DeepSpeed-Ulysses, 2023): before attention every rank gets all
///    tokens of its share of the heads; afterwards the result is sent back.
/// Keys and values count once per head in `heads`, or per "kv_heads" if there are fewer.
/// Fails for a ring around unfused attention: its scores would need all keys at once.
Result<workload::Workload> context_parallel(workload::Workload workload,
                                            const RankSetting& setting);

}  // namespace rehearse::strategies
