// Layout: a workload as a plan lays it out: what each kind of rank computes, holds and sends, and
// in which order. Strategies make it (strategies/lay_out.h); the cost models of time and memory,
// and the lowering to a job, read it.
//
// Ranks that do the same are one *stage* with a number of ranks. A stage has its own degrees and
// its own range of layers, cut into chunks where the schedule interleaves. Ranks are numbered stage
// by stage; within a stage tensor runs fastest, then context, then data:
//   rank = first_rank + (data · context_degree + context) · tensor_degree + tensor
// so that tensor groups stand on neighbouring devices. Expert groups are consecutive data ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/workload.h"

namespace rehearse::workload {

struct Degrees {
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;  ///< divides data
  std::uint32_t ranks() const { return data * context * tensor; }
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

enum class Pass : std::uint8_t {
  kForward,
  kBackward,         ///< whole, or of the inputs alone where the order has kBackwardWeights too
  kBackwardWeights,  ///< ops with Op::weight_gradient (zero-bubble schedules)
};

/// One entry of a stage's order: this pass of this microbatch through this chunk.
struct Slot {
  Pass pass;
  std::uint32_t chunk;
  std::uint32_t microbatch;
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Bytes that a parameter takes, by what holds it.
struct StateBytes {
  double weights;
  double gradient;
  double optimizer;
  double total() const { return weights + gradient + optimizer; }
};

/// What a rank holds of a layer beyond its shard while the layer runs (ZeRO-3, FSDP).
struct Gathering {
  double weights = 0;   ///< bytes per parameter, of the layer that runs
  double gradient = 0;  ///< bytes per parameter, of the layer in backward: not yet scattered
  double ahead = 0;     ///< further layers whose weights are gathered at the same time
  bool kept = false;    ///< every layer stays so over the step: sharded stages of a pipeline
};

struct Chunk {
  std::vector<Layer> layers;
  std::uint32_t first_layer;  ///< of the workload, counted with counts
};

struct Stage {
  std::string name;  ///< "stage 3", or the role it was given
  Degrees degrees;
  std::uint32_t first_rank;
  std::vector<Chunk> chunks;
  std::vector<Slot> order;
  /// Per parameter as it stands on one rank, shards already divided.
  StateBytes states;
  Gathering gathering = {};

  /// Microbatches whose activations of a chunk are held at once, at the worst moment of `order`.
  std::vector<std::uint32_t> most_in_flight() const;
  double parameters() const;  ///< on one rank, before data-parallel shards
};

struct Layout {
  std::vector<Stage> stages;
  std::uint32_t microbatches;  ///< per data-parallel rank of the first stage and step
  double samples_per_step;     ///< over all ranks
  double tokens_per_sample;
  Flops model_flops;  ///< of a step over all ranks: what MFU counts
  /// Transforms that were applied, in order; for people.
  std::vector<std::string> applied;

  std::uint32_t ranks() const;
};

}  // namespace rehearse::workload
