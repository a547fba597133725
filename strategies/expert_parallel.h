// Expert parallelism (Lepikhin et al., GShard, 2020): a mixture's experts stand on different
// data-parallel ranks.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides the experts of a rank by the degree; each gets the tokens of so many more ranks. Around
/// the expert ops of a phase (with what stands between them) an all-to-all takes tokens there and
/// back: bytes of the first one's input and the last one's output.
///
/// capacity_factor other than 1: every expert computes so many even shares, padded or cut, and so
/// many are sent. Else expert_imbalance says what the busiest rank has to do.
///
/// ExpertExchange::kWeights leaves tokens where they are and gathers all experts of a layer before
/// each phase; their gradients are scattered behind backward (Liu et al., Janus, 2023). kCheaper
/// compares what a rank sends in a microbatch: four times its tokens, or three times the weights.
///
/// Degrees::whole_experts: tensor parallelism, which comes later, leaves expert ops and weights as
/// they are but for its share of the tokens (Megatron-Core's parallel folding).
///
/// Tables of rows count as experts that nobody routes to: indices, rows and their gradients travel.
Result<workload::Workload> expert_parallel(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
