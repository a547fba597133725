#include "strategies/states.h"

namespace rehearse::strategies {
namespace {

using workload::Dtype;

bool is_mixed(Dtype dtype) { return workload::bytes_of(dtype) < 4; }

double moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 4;
    case Optimizer::kAdam:
      return 8;
  }
  return 8;
}

}  // namespace

workload::StateBytes state_bytes(const Training& training, const Plan& plan) {
  const double states = moments(training.optimizer);
  if (!is_mixed(training.dtype) || plan.zero == 3)
    return {.weights = 4, .gradient = 4, .optimizer = states};
  return {.weights = 2, .gradient = summed_bytes(training, plan), .optimizer = 4 + states};
}

Dtype gradient_dtype(const Training& training, const Plan& plan) {
  const bool half = training.dtype == Dtype::kFp16 && plan.zero != 3;
  return training.gradients.value_or(half ? Dtype::kFp16 : Dtype::kFp32);
}

double summed_bytes(const Training& training, const Plan& plan) {
  return workload::bytes_of(gradient_dtype(training, plan));
}

double update_bytes(const Training& training, const Plan& plan) {
  // Weights and moments read and written, gradients read.
  const double update = 2 * (4 + moments(training.optimizer)) + 4;
  if (!is_mixed(training.dtype)) return update;
  return update + 12 + (plan.zero == 3 ? 0 : 6);
}

Parameters parameters_of(const workload::Layer& layer) {
  Parameters sum;
  for (const workload::Weights& w : layer.weights)
    (w.sparse ? sum.sparse : w.expert ? sum.expert : sum.dense) += w.count;
  return sum;
}

Parameters parameters_of(const workload::Stage& stage) {
  Parameters sum;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers) {
      const Parameters one = parameters_of(layer);
      sum.dense += layer.count * one.dense;
      sum.expert += layer.count * one.expert;
      sum.sparse += layer.count * one.sparse;
    }
  return sum;
}

double shard_of(const Parameters& parameters, const workload::Degrees& degrees) {
  return parameters.dense / degrees.sharers(false) + parameters.expert / degrees.sharers(true);
}

Sharded sharded(const workload::Stage& stage) {
  const Parameters all = parameters_of(stage);
  const double shard = shard_of(all, stage.degrees), held = all.summed() + all.sparse;
  return {.gradients = all.summed() > 0 ? shard / all.summed() : 1,
          .all = held > 0 ? (shard + all.sparse) / held : 1};
}

}  // namespace rehearse::strategies
