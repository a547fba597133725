// Memory and traffic of a parameter in a step, by number format, optimizer and sharding.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

/// Bytes per parameter before shards (weights / gradient / optimizer; Adam, with momentum, plain):
///   fp32, tf32                       4 / 4 / 8, 4, 0
///   16 or 8 bits                     2 / 4 or 2 / 12, 8, 4   an fp32 copy of the weights included
///   16 or 8 bits, zero 3 (FSDP)      4 / 4 / 8, 4, 0         fp32 shards, gathered in 16 bits
/// Gradients have the format Training::gradients. Absent: fp32, except fp16 if training is in fp16,
/// as in Megatron-LM.
workload::StateBytes state_bytes(const Training& training, const Plan& plan);

/// The number format of gradients, as accumulated and as summed.
workload::Dtype gradient_dtype(const Training& training, const Plan& plan);

/// The bytes of one gradient on the wire, without compression.
double summed_bytes(const Training& training, const Plan& plan);

/// Bytes that the optimizer reads and writes per parameter of this rank's shard. Adam with fp32
/// states moves 28 (4 reads and 3 writes), momentum 20, plain SGD 12. Mixed precision adds the norm
/// of the gradients (4), their scaling (8) and, for 16-bit weights, writing them (6): Adam 46,
/// which agrees with Megatron-LM's published steps.
double update_bytes(const Training& training, const Plan& plan);

/// The parameters on one rank, by the way that shards divide them.
struct Parameters {
  double dense = 0;
  double expert = 0;
  double sparse = 0;  ///< rows of tables: no shards, and no gradient of the whole table
  /// Those that are not trained: weights alone, which shards divide likewise.
  double frozen_dense = 0;
  double frozen_expert = 0;
  double nf4 = 0;  ///< those of the frozen that are in 4 bits
  double summed() const { return dense + expert; }
  double all() const { return summed() + sparse + frozen_dense + frozen_expert; }
  /// Those that a pass reads and shards divide, trained or not.
  Parameters read() const {
    return {.dense = dense + frozen_dense, .expert = expert + frozen_expert};
  }
  /// As many parameters of `each` bytes as take the bytes of these, some of them in 4 bits.
  Parameters gathered(double each) const;
  void add(const Parameters& each, double count);
};
Parameters parameters_of(const workload::Layer& layer);  ///< of one of its `count` layers
Parameters parameters_of(const workload::Stage& stage);

/// The share of the summed parameters on a rank, if these are sharded.
double shard_of(const Parameters& parameters, const workload::Degrees& degrees);

/// The parameters that a rank updates: its shard with ZeRO, else all that are summed.
double updated(const Plan& plan, const Parameters& parameters, const workload::Degrees& degrees);

/// Per parameter of `held` on one rank: sharded by ZeRO and on the device as the tiers say. It
/// is a mean if shards of experts are larger than those of others, if rows have no gradient of
/// the whole table, or if some are frozen: these have the number format of matrix operands, or 4
/// bits.
workload::StateBytes states_of(const Training& training, const Plan& plan, const Parameters& held,
                               const workload::Degrees& degrees);

/// What a rank with these parameters keeps on other tiers.
workload::Away away_of(const Training& training, const Plan& plan, const Parameters& held,
                       const workload::Degrees& degrees);

/// The movement of parameters and gradients between the ranks that hold the same ones.
struct ParameterTraffic {
  enum class When : std::uint8_t {
    kAfterPasses,   ///< gradients when the last backward pass has ended, weights after the update
    kEachBackward,  ///< gradients after every backward pass, weights after the update
    kLayerByLayer,  ///< weights before every pass through a layer, gradients after its backward
  };
  When when = When::kAfterPasses;
  CollectiveKind sum = CollectiveKind::kAllReduce;
  double gradient = 0;  ///< bytes of one, compressed
  double weights = 0;   ///< bytes of one that is gathered; 0: none are
};
/// REQUIRES: Synchronization::kAllReduce.
ParameterTraffic traffic_of(const Training& training, const Plan& plan, std::size_t stages,
                            std::uint32_t microbatches);

}  // namespace rehearse::strategies
