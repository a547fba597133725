// Expert parallelism (Lepikhin et al., GShard, 2020): the experts of a mixture are divided over
// data-parallel ranks.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides the experts of a rank by the degree; each expert gets the tokens of that many more
/// ranks. An all-to-all precedes and follows the expert ops of a phase and the ops between them.
/// Their bytes are the first op's input and the last op's output.
///
/// capacity_factor other than 1: every expert computes that many even shares, padded or cut, and
/// the same number is sent. Otherwise expert_imbalance is the relative load of the busiest rank.
///
/// ExpertExchange::kWeights leaves tokens in place and gathers all experts of a layer before
/// each phase; their gradients are scattered after backward (Liu et al., Janus, 2023). kCheaper
/// compares the data of a rank per microbatch: four times its tokens, or three times the weights.
///
/// Degrees::whole_experts: tensor parallelism, which is applied later, does not divide expert ops
/// and weights, except by its share of the tokens (Megatron-Core's parallel folding).
///
/// Tables of rows are experts without routing: indices, rows and their gradients are sent.
Result<workload::Workload> expert_parallel(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
