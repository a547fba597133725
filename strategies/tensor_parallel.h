// Tensor parallelism (Shoeybi et al., Megatron-LM, 2019) and sequence parallelism (Korthikanti et
// al., MLSys 2023).
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides the tagged extents, weights and saved activations by the degree, and joins partial sums:
/// an op whose contracted extent is divided is followed by an all-reduce of its output. In backward
/// it overlaps the following gradient of the weights if the plan says so. Contracted ops whose
/// outputs are added (with only weight gradients and elementwise ops between them) share one.
///
/// With sequence parallelism the ops outside of such regions work on a share of the tokens: an
/// all-gather of the input begins a region and a reduce-scatter ends it. Activations are saved in
/// shares; the gradient of weights gathers its input again, overlapping the gradient of the input.
///
/// With asynchronous_tensor a collective overlaps the matrix product that it feeds or that feeds
/// it. In pieces of one rank's share each, the first product needs no data from others and the last
/// result is not sent, so that the pair takes as long as the longer of both.
Result<workload::Workload> tensor_parallel(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
