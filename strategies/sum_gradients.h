// Data parallelism of a layout: gradients are summed over the ranks that hold the same parameters,
// then each updates its part. (data_parallel.h does so for recordings.)
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Without ZeRO: an all-reduce. ZeRO-1 and 2 (Rajbhandari et al., SC20): a reduce-scatter, the
/// update of the rank's shard, an all-gather of the weights. ZeRO-2 stores only shards of
/// gradients and therefore scatters them in every microbatch.
///
/// With overlap, gradients are sent in buckets: layers whose gradients add up to at least
/// Plan::bucket, in the order of backward; a larger layer is sent alone. Otherwise all of a stage
/// are sent together after backward, as in Megatron-LM. Compressed gradients are read and written
/// twice.
Result<workload::Layout> sum_gradients(workload::Layout layout, const JobSetting& setting);

/// Local SGD (Stich, ICLR 2019): every rank updates its own parameters; all average them every
/// `local_steps`. The layout is that of a mean step: an average moves that part of its bytes.
Result<workload::Layout> average_parameters(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
