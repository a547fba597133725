// Plan: how a training step is laid out over ranks. A plan contains no costs. The name, range and
// meaning of each field are in plan_fields.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/adapters.h"
#include "models/workload/op.h"
#include "sim/base/algorithm.h"
#include "sim/base/units.h"

namespace rehearse::strategies {

/// kAsNeeded: full for the fewest layers of each stage with which it fits its device; full for all of
/// them where the device is not known (step/fit_recompute.h).
enum class Recompute : std::uint8_t { kNone, kSelective, kFull, kAsNeeded };
inline constexpr std::string_view kRecomputeNames[] = {"none", "selective", "full", "as_needed"};

enum class Optimizer : std::uint8_t { kSgd, kMomentum, kAdam };
inline constexpr std::string_view kOptimizerNames[] = {"sgd", "momentum", "adam"};

/// Where gradients in 16 bits are while their sums over microbatches are kept in FP32.
enum class Accumulation : std::uint8_t {
  kInPlace,  ///< gone as soon as they are added (Megatron-LM)
  kApart,    ///< in buckets of their own for the whole step (DistributedDataParallel of PyTorch
             ///< in front of an FP32 accumulator: nanotron; DeepSpeed's optimizer of BF16)
};
inline constexpr std::string_view kAccumulationNames[] = {"in_place", "apart"};

/// Batch, number formats and optimizer of the training.
struct Training {
  double global_batch = 1;  ///< samples per optimizer step
  double microbatch = 1;    ///< samples per data-parallel rank and pipeline slot
  workload::Dtype dtype = workload::Dtype::kBf16;
  Optimizer optimizer = Optimizer::kAdam;
  Recompute recompute = Recompute::kNone;
  /// The number format of accumulated gradients and of their sums over ranks; absent: as the
  /// optimizer usually has them (docs/concepts/memory.md).
  std::optional<workload::Dtype> gradients = {};
  Accumulation accumulation = Accumulation::kInPlace;
  /// Low-rank adapters, which the workload already has (workload::with_adapters); 0: all weights are
  /// trained.
  std::uint32_t lora_rank = 0;
  workload::Adapted lora_targets = workload::Adapted::kAttention;
  workload::Frozen frozen_weights = workload::Frozen::kAsTrained;
};

enum class Schedule : std::uint8_t { kGpipe, k1f1b, kInterleaved, kZeroBubble, kShifted };
inline constexpr std::string_view kScheduleNames[] = {"gpipe", "1f1b", "interleaved", "zero_bubble",
                                                      "shifted_critical_path"};

/// The quantity that the chunks of a pipeline divide evenly.
enum class LayerSplit : std::uint8_t {
  kBlocks,  ///< layers, with embedding and head added to the first and the last chunk
  kLayers,  ///< layers, embedding and head counted too
  kFlops,   ///< matrix FLOPs
};
inline constexpr std::string_view kLayerSplitNames[] = {"blocks", "layers", "flops"};

enum class Synchronization : std::uint8_t {
  kAllReduce,
  kParameterServer,
  kLocalSgd,  ///< parameters averaged every `local_steps`
};
inline constexpr std::string_view kSynchronizationNames[] = {"all_reduce", "parameter_server",
                                                             "local_sgd"};

/// Workers and servers (Li et al., OSDI 2014).
struct ParameterServer {
  std::uint32_t servers = 1;  ///< separate ranks that follow all workers
  /// Steps that a worker may be ahead of the slowest; 0 is synchronous; absent: without bound.
  std::optional<std::uint32_t> staleness = 0;
  std::uint32_t backup_workers = 0;  ///< number of gradients per step that may arrive too late
};

/// How attention to a sequence that is cut over ranks gets its keys and values.
enum class ContextExchange : std::uint8_t { kRing, kAllToAll };
inline constexpr std::string_view kContextExchangeNames[] = {"ring", "all_to_all"};

/// The data that mixture layers with expert parallelism exchange.
enum class ExpertExchange : std::uint8_t {
  kTokens,      ///< a copy of a token goes to each of its experts
  kWeights,     ///< experts are gathered where the tokens are
  kCheaper,     ///< by layer, the one that moves fewer bytes in a step
  kTokensOnce,  ///< one copy goes to each rank that holds some of its experts (DeepEP, HybridEP)
};
inline constexpr std::string_view kExpertExchangeNames[] = {"tokens", "weights", "cheaper",
                                                            "tokens_once"};

/// How ZeRO-3 gathers the weights of a layer.
enum class GatherWeights : std::uint8_t {
  kByLayer,   ///< at once, while the layer before runs (FSDP, DeepSpeed since 2022)
  kByTensor,  ///< each matrix on its own before each pass, which waits (DeepSpeed in 2021)
};
inline constexpr std::string_view kGatherWeightsNames[] = {"by_layer", "by_tensor"};

/// Where state is kept while no op uses it.
enum class Tier : std::uint8_t { kDevice, kHost, kNvme };
inline constexpr std::string_view kTierNames[] = {"device", "host", "nvme"};

struct Kept {
  Tier tier = Tier::kDevice;
  double share = 1;  ///< of the state in the tier; the rest is on the device

  constexpr double away() const { return tier == Tier::kDevice ? 0 : share; }
  constexpr double on_nvme() const { return tier == Tier::kNvme ? share : 0; }
  friend constexpr bool operator==(const Kept&, const Kept&) = default;
};

/// The tier of each kind of state. The host updates the parameters whose optimizer states are not
/// on the device, and the gradients that leave the device are those of these parameters.
struct StateTiers {
  Kept weights = {}, optimizer = {}, activations = {};
  Tier gradients = Tier::kDevice;

  constexpr bool any() const { return *this != StateTiers{}; }
  friend constexpr bool operator==(const StateTiers&, const StateTiers&) = default;
};

/// Usual tiers under one name, with `host` for what leaves the device.
enum class Offload : std::uint8_t { kNone, kOptimizer, kWeights, kActivations, kGradients };
inline constexpr std::string_view kOffloadNames[] = {"none", "optimizer", "weights", "activations",
                                                     "gradients"};
constexpr StateTiers tiers_of(Offload offload) {
  constexpr Kept kAway = {.tier = Tier::kHost};
  StateTiers tiers;
  if (offload == Offload::kActivations) tiers.activations = kAway;
  if (offload == Offload::kWeights) tiers.weights = kAway;
  if (offload == Offload::kGradients) tiers.gradients = Tier::kHost;
  if (offload != Offload::kNone && offload != Offload::kActivations) tiers.optimizer = kAway;
  return tiers;
}

/// Which ranks are neighbours, beyond tensor and context groups, and so get the shortest routes of
/// a cluster.
enum class Placement : std::uint8_t {
  kTensorDataPipeline,  ///< ranks of one stage: data parallelism gets short routes
  kTensorPipelineData,  ///< ranks of one pipeline: sends between stages get short routes
};
inline constexpr std::string_view kPlacementNames[] = {"stages_apart", "stages_together"};

/// A range of layers, embedding and head counted too, with ranks of its own: uneven stages, layer
/// separation, heterogeneous devices.
struct StagePlan {
  std::string name = {};
  std::uint32_t layers = 0;  ///< number of the next layers; 0: all remaining ones
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::optional<Recompute> recompute = {};  ///< absent: as the training says; not kAsNeeded
};

struct Plan {
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;
  /// Tensor parallelism within experts: 1 or `tensor` (absent). With 1, each rank has whole
  /// experts, and `expert` divides data x context x tensor.
  std::optional<std::uint32_t> expert_tensor = {};
  std::uint32_t interleave = 1;  ///< model chunks per stage
  /// Absent: blocks, or layers if only they make the chunks of an interleaved schedule even.
  std::optional<LayerSplit> split = {};
  Schedule schedule = Schedule::k1f1b;
  std::uint32_t zero = 0;  ///< ZeRO stage; 3 is FSDP
  GatherWeights gather_weights = GatherWeights::kByLayer;
  bool sequence_parallel = false;
  Synchronization synchronization = Synchronization::kAllReduce;
  ParameterServer parameter_server = {};
  std::uint32_t local_steps = 1;
  /// Sums of gradients overlap backward, in buckets; otherwise they follow it.
  bool overlap_gradients = true;
  Bytes bucket = Bytes::mib(25);
  /// The share of gradients that is sent. 1: all; 0.01: one in a hundred.
  double compression = 1;
  /// Sums of the gradients of inputs over tensor ranks overlap the gradients of weights.
  bool overlap_tensor = true;
  /// Tensor-parallel collectives overlap the matrix operations they belong to, in pieces.
  bool asynchronous_tensor = false;
  /// Operands of FP8 products are gathered as 8-bit numbers. This is impossible where each row has
  /// its own scale: the rows that ranks hold are not those that are multiplied.
  bool quantised_gathers = true;
  /// Parts of a microbatch that take turns: collectives of one run while others compute.
  std::uint32_t microbatch_parts = 1;
  ContextExchange context_exchange = ContextExchange::kRing;
  /// Each rank of a ring has a part from the beginning and one from the end of the sequence, so
  /// that causal attention is evenly divided. Otherwise the last rank sees all keys.
  bool context_balanced = true;
  ExpertExchange expert_exchange = ExpertExchange::kTokens;
  /// Exchanges of tokens overlap the computing of other microbatches: they run alongside
  /// everything, and only the step waits for them.
  bool overlap_experts = false;
  /// Parts of an exchange of tokens: one is sent while the experts compute another.
  std::uint32_t exchange_parts = 1;
  /// The token capacity of every expert, as a multiple of an even share: missing tokens are padded,
  /// further ones dropped. 1: no limit.
  double capacity_factor = 1;
  /// The load of the busiest rank's experts, as a multiple of the mean, if there is no capacity
  /// limit.
  double expert_imbalance = 1;
  StateTiers tiers = {};
  Placement placement = Placement::kTensorDataPipeline;
  /// The algorithms of collectives. Absent: NCCL's choice by size, and pairs of messages for
  /// all_to_all.
  Algorithms collectives = {};
  /// Instead of `pipeline`, `data` and `tensor`.
  std::vector<StagePlan> stages = {};
};

/// A training and the plan that it runs under. plan_fields.h describes each field.
struct Candidate {
  Training training = {};
  Plan plan = {};
};

}  // namespace rehearse::strategies
