// Tensor parallelism (Shoeybi et al., Megatron-LM, 2019) and sequence parallelism (Korthikanti et
// al., MLSys 2023).
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Divides the tagged extents, weights and kept activations by the degree, and joins partial sums:
/// behind an op whose contracted extent is divided stands an all-reduce of its output; in backward
/// it runs beside the gradient of the weights that comes next. Contracted ops whose outputs are
/// added up (those with nothing but weight gradients and elementwise ops between them) share one.
///
/// With sequence parallelism the ops outside of such regions work on a share of the tokens: an
/// all-gather of the input begins a region and a reduce-scatter ends it. Activations are kept in
/// shares; the gradient of weights gathers its input again, beside the gradient of the input.
///
/// With asynchronous_tensor a collective runs beside the matrix product that it feeds or that feeds
/// it. In pieces of one rank's share each, the first product needs nothing from others and the last
/// result goes to nobody, so that the longer of the two is what it takes.
Result<workload::Workload> tensor_parallel(workload::Workload workload, const RankSetting& setting);

}  // namespace rehearse::strategies
