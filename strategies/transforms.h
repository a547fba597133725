// The transforms of plans, which lay_out.cc applies in its order: first those of the workload of a
// rank, then those of the layout of the whole job. Offloading (offload.h), which also prices its
// copies, and orders of microbatches (schedule.h) have headers of their own.
#pragma once

#include <span>

#include "strategies/layout_transform.h"
#include "strategies/transform.h"

namespace rehearse::strategies {

// --- Recomputation: activations dropped after forward and made again before backward (Chen et al.,
// 2016; selective: Korthikanti et al., MLSys 2023).

/// Full: a layer with a declared input saves only that and runs all of forward again, including its
/// collectives; embedding and head (transform.h) save everything. Selective: saved scores are
/// dropped, and the ops marked as core run again.
/// Transient activations are unchanged.
Result<workload::Workload> recompute(workload::Workload workload, const RankSetting& setting);

// --- Context parallelism: the tokens of a sample are divided over ranks.

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

// --- Expert parallelism (Lepikhin et al., GShard, 2020): the experts of a mixture are divided over
// data-parallel ranks.

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

// --- Tensor parallelism (Shoeybi et al., Megatron-LM, 2019) and sequence parallelism (Korthikanti et
// al., MLSys 2023).

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

// --- Parts: work divided into parts that take turns, so that communication of one runs while others
// compute (docs/concepts/parts.md). Smaller kernels and their launches are priced as any others.

/// Divides each exchange of tokens, with the experts' products up to the exchange that returns
/// them, into Plan::exchange_parts (Hwang et al., Tutel, MLSys 2023).
Result<workload::Workload> exchanges_in_parts(workload::Workload workload,
                                              const RankSetting& setting);

/// Divides the microbatch in every phase of every layer into Plan::microbatch_parts (Lai et al.,
/// Merak, TPDS 2023). The last communication of a phase runs during the first ops of the next
/// layer.
Result<workload::Workload> microbatch_in_parts(workload::Workload workload,
                                               const RankSetting& setting);

// --- Pipeline parallelism and layer separation: each range of layers has its own ranks.

/// The layers of a model as the ranks of a stage see them.
struct StageSource {
  const workload::Workload* workload;  ///< rewritten for a rank of this stage
  RankSetting setting;
  std::string name;
};

/// Divides layers into stages, one per source (layer_split.h).
///
/// A stage border with tensor parallelism carries each element once: a rank sends its share, and an
/// all-gather among the receivers follows, unless tokens are divided anyway (Narayanan et al.,
/// SC21, "scatter/gather"). A tied embedding is on the first and the last stage.
/// Sets states of parameters (states.h); leaves orders empty.
Result<workload::Layout> cut_stages(std::span<const StageSource> sources,
                                    const workload::Workload& sample);

// --- Data parallelism of a layout: gradients are summed over the ranks that hold the same parameters,
// then each updates its part. (data_parallel.h does so for recordings.)

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

// --- ZeRO-3, which PyTorch calls FSDP (Rajbhandari et al., SC20; Zhao et al., VLDB 2023): parameters,
// gradients and the optimizer's states are all sharded over the ranks that hold the same.

/// Each layer gathers its weights before forward and again before backward (or before its
/// recomputation), and scatters the sums of its gradients afterwards, in every microbatch.
/// With overlap, weights arrive while the previous layer runs, and only the optimizer waits for
/// gradients.
///
/// Stage::gathering: the weights of the running layer and of the next, the gradients of one; by
/// tensor, those of one matrix (Layer::gathered_at_once).
///
/// In a pipeline, weights stay gathered for the step and gradients stay whole, as in PyTorch: both
/// are sent once per step, and Stage::gathered contains all of them.
Result<workload::Layout> shard_parameters(workload::Layout layout, const JobSetting& setting);

// --- A parameter server instead of all-reduce (Li et al., OSDI 2014).

/// Workers push the gradients of every layer and fetch its new parameters. Servers hold the
/// optimizer's states, each for an equal share of every layer, and update. With overlap, a layer is
/// pushed as soon as its gradient is ready, and fetched after that. Servers add up the pushes of
/// all workers, or update for each push if workers do not wait for each other.
///
/// With backup workers (Chen et al., 2016) the same number of gradients is discarded: samples and
/// model FLOPs of a step do not count them.
Result<workload::Layout> parameter_server(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
