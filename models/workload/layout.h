// Layout: a workload laid out by a plan: the ops, memory, messages and order of each kind of rank.
// Strategies make it (strategies/lay_out.h); the cost models of time and memory,
// and the lowering to a job, read it.
//
// Equal ranks are one *stage* with a number of ranks. A stage has its own degrees and
// its own range of layers, divided into chunks if the schedule interleaves. Ranks are numbered
// stage by stage; within a stage tensor varies fastest, then context, then data:
//   rank = first_rank + (data · context_degree + context) · tensor_degree + tensor
// so that tensor groups are on neighbouring devices. With stages together, the stages of one
// data rank precede the next data rank (Stage::rank). Expert groups are consecutive data ranks;
// for experts that tensor parallelism does not divide, consecutive ranks. Parameter servers follow
// all stages.
//
// The course of a step, for callers that lower or price it:
//  - Chunk c of stage s passes its last layer's output on to stage s + 1, and chunk c of the last
//    stage to chunk c + 1 of the first. `Layer::output` is the data that one rank sends: with
//    tensor parallelism its share, and if the next layer needs the whole, that layer has an
//    all-gather. If stages differ in their degrees, the sum over ranks is passed on.
//  - The layers of a chunk run in their order; `Layer::inputs` is empty here.
//  - Layer::step runs once, in three parts. Deferred ops before the first other op
//    begin when the last backward of this layer has ended. The rest follows when all gradients of
//    the stage are summed, layer by layer; its deferred ops overlap other layers.
//  - Collectives along Axis::kData join all ranks of a stage that hold the same parameters: data
//    and context ranks; for Op::expert, those with the same experts (group_size()).
//  - With `servers`, kReduce along kData sends a gradient to the servers and kBroadcast fetches
//    parameters from them, each divided evenly over them.
//  - An order without kRecompute runs Layer::recompute at the start of backward.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/workload.h"
#include "sim/base/algorithm.h"

namespace rehearse::workload {

struct Degrees {
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;  ///< divides data; where experts are whole, all ranks
  /// Tensor parallelism does not divide experts: its ranks hold different ones, as data ranks do.
  bool whole_experts = false;
  std::uint32_t ranks() const { return data * context * tensor; }
  /// The number of ranks that hold the same weights, or the same experts.
  std::uint32_t sharers(bool of_experts) const {
    return data * context * (of_experts && whole_experts ? tensor : 1) / (of_experts ? expert : 1);
  }
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

enum class Pass : std::uint8_t {
  kForward,
  kBackward,         ///< whole, or of the inputs alone where the order has kBackwardWeights too
  kBackwardWeights,  ///< ops with Op::weight_gradient (zero-bubble schedules)
  kRecompute,        ///< before the backward whose gradients it need not wait for
};

/// One entry of a stage's order: this pass of this microbatch through this chunk.
struct Slot {
  Pass pass;
  std::uint32_t chunk;
  std::uint32_t microbatch;
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Bytes of a parameter, by kind of state.
struct StateBytes {
  double weights;
  double gradient;
  double optimizer;
  /// Temporaries of the update that are as large as the shard it updates. Absent: a copy of the
  /// gradient.
  std::optional<double> update = {};
  double total() const { return weights + gradient + optimizer; }
};

/// Additional memory of a layer beyond its shard while it runs (ZeRO-3, FSDP), for each of its
/// parameters that are gathered at once.
struct Gathering {
  double weights = 0;   ///< bytes, of the layer that runs
  double gradient = 0;  ///< bytes, of the layer in backward: not yet scattered
  double ahead = 0;     ///< further layers whose weights are gathered at the same time
};

struct Chunk {
  std::vector<Layer> layers;
  std::uint32_t first_layer;  ///< number in the workload, counting repeated layers
};

struct Stage {
  std::string name = {};  ///< "stage 3", or the role it was given
  Degrees degrees = {};
  std::uint32_t first_rank;
  std::vector<Chunk> chunks = {};
  std::vector<Slot> order = {};
  /// Per parameter on one rank, after sharding. If shards of experts are
  /// larger than those of other parameters, the mean.
  StateBytes states = {};
  Away away = {};  ///< weights, gradients and optimizer states of a rank
  Gathering gathering = {};
  /// Held over the step: buckets and buffers of communication; weights and gradients that sharded
  /// stages of a pipeline gather once a step.
  Bytes gathered = Bytes::b(0);
  /// The number of stages whose ranks of equal data index are adjacent. It is the distance between
  /// consecutive data ranks of a stage.
  std::uint32_t together = 1;

  /// The rank with this number in the stage.
  std::uint32_t rank(std::uint32_t number) const {
    const std::uint32_t block = degrees.context * degrees.tensor;
    return first_rank + number / block * block * together + number % block;
  }
  double parameters() const;  ///< on one rank, before data-parallel shards
};

/// Servers of parameters (Li et al., OSDI 2014). Each keeps its share of every layer.
struct Servers {
  std::uint32_t count;
  std::uint32_t first_rank;
  /// Steps that a worker may be ahead of the slowest; 0: all wait for each other; absent: without
  /// bound.
  std::optional<std::uint32_t> staleness;
  std::uint32_t backup_workers;  ///< number of data ranks whose pushes a step does not wait for
  double parameters;             ///< on one server
  StateBytes states;             ///< per parameter on a server
  /// The update of a server, `updates_per_step` times per step: for each push if workers do
  /// not wait for each other, otherwise once for their sum.
  Op update;
  std::uint32_t updates_per_step;
};

struct Layout {
  NamePool names = {};  ///< keeps the names of ops
  std::vector<Stage> stages = {};
  std::uint32_t microbatches;  ///< per data-parallel rank of the first stage and step
  double samples_per_step;     ///< over all ranks
  double tokens_per_sample;
  Flops model_flops;  ///< FLOPs per step of all ranks, as counted by MFU
  std::optional<Servers> servers = {};
  /// Gradient of the matrix that embedding and head share, if they are on different stages:
  /// summed between each rank of the first stage and its counterpart on the last, once per step.
  Bytes tied_gradient = Bytes::b(0);
  Algorithms collectives = {};  ///< their algorithms; absent: the usual ones
  /// Transforms that were applied, in order; for people.
  std::vector<std::string> applied = {};

  std::uint32_t ranks() const;  ///< servers included
};

/// Ranks that take part in the collective `op` on a stage of these degrees.
std::uint32_t group_size(const Op& op, const Degrees& degrees);

/// Whether `is(op, stage)` holds for some op of the layout and its stage.
template <class Is>
bool any_op(const Layout& layout, Is is) {
  for (const Stage& stage : layout.stages)
    for (const Chunk& chunk : stage.chunks)
      for (const Layer& layer : chunk.layers)
        for (const std::vector<Op>* ops :
             {&layer.forward, &layer.backward, &layer.recompute, &layer.step})
          for (const Op& op : *ops)
            if (is(op, stage)) return true;
  return false;
}

}  // namespace rehearse::workload
