// Data parallelism of a layout: gradients are summed over the ranks that hold the same parameters,
// then each updates its part. (data_parallel.h does so for recordings.)
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Without ZeRO: an all-reduce. ZeRO-1 and 2 (Rajbhandari et al., SC20): a reduce-scatter, the
/// update of the rank's shard, an all-gather of the weights; ZeRO-2 keeps no more than shards of
/// gradients and so scatters them in every microbatch.
///
/// Overlapped, gradients travel in buckets: the layers whose gradients come to at least
/// Plan::bucket, in the order of backward; a larger layer goes alone. Else all of a stage travel
/// together behind backward, as in Megatron-LM. Compressed gradients are read and written twice.
Result<workload::Layout> sum_gradients(workload::Layout layout, const JobSetting& setting);

/// Local SGD (Stich, ICLR 2019): every rank updates its own parameters; all average them every
/// `local_steps`. The layout is that of a mean step: an average moves that part of its bytes.
Result<workload::Layout> average_parameters(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
