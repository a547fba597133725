#include "strategies/states.h"

namespace rehearse::strategies {
namespace {

using workload::Dtype;

bool is_mixed(Dtype dtype) { return workload::bytes_of(dtype) < 4; }

double moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd: return 0;
    case Optimizer::kMomentum: return 4;
    case Optimizer::kAdam: return 8;
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

void Parameters::add(const Parameters& each, double count) {
  dense += count * each.dense;
  expert += count * each.expert;
  sparse += count * each.sparse;
  frozen_dense += count * each.frozen_dense;
  frozen_expert += count * each.frozen_expert;
  nf4 += count * each.nf4;
}

Parameters Parameters::gathered(double each) const {
  const double frozen = frozen_dense + frozen_expert;
  const double smaller =
      frozen > 0 && each > 0 ? nf4 / frozen * (1 - workload::kNf4Sharded / each) : 0;
  return {.dense = dense + frozen_dense * (1 - smaller),
          .expert = expert + frozen_expert * (1 - smaller)};
}

Parameters parameters_of(const workload::Layer& layer) {
  Parameters sum;
  for (const workload::Weights& w : layer.weights) {
    if (w.nf4) sum.nf4 += w.count;
    if (w.frozen)
      (w.expert ? sum.frozen_expert : sum.frozen_dense) += w.count;
    else
      (w.sparse ? sum.sparse : w.expert ? sum.expert : sum.dense) += w.count;
  }
  return sum;
}

Parameters parameters_of(const workload::Stage& stage) {
  Parameters sum;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers) sum.add(parameters_of(layer), layer.count);
  return sum;
}

double shard_of(const Parameters& parameters, const workload::Degrees& degrees) {
  return parameters.dense / degrees.sharers(false) + parameters.expert / degrees.sharers(true);
}

double updated(const Plan& plan, const Parameters& parameters, const workload::Degrees& degrees) {
  return plan.zero >= 1 ? shard_of(parameters, degrees) : parameters.summed();
}

namespace {

/// Of those that are trained.
workload::StateBytes trained_states(const Training& training, const Plan& plan,
                                    const Parameters& held, const workload::Degrees& degrees) {
  workload::StateBytes states = state_bytes(training, plan);
  const double shard = shard_of(held, degrees), all = held.summed() + held.sparse;
  const double sharded = all > 0 ? (shard + held.sparse) / all : 1;
  const bool apart = training.accumulation == Accumulation::kApart && is_mixed(training.dtype) &&
                     states.gradient == 4 && plan.zero < 2;
  // The gradients that the rank updates, in one tensor, and converted; those in FP32 stay where they
  // are. BigScience's rows with one data rank show that a rank that updates all of them converts too.
  if (plan.zero == 1 || plan.zero == 2)
    states.update = states.gradient == 4 ? 0 : sharded * (4 + states.gradient);
  if (apart) states.gradient += 2;
  if (held.sparse > 0) states.gradient *= held.summed() / all;
  if (plan.zero >= 1) states.optimizer *= sharded;
  if (plan.zero >= 2 && held.summed() > 0) states.gradient *= shard / held.summed();
  if (plan.zero == 3) states.weights *= sharded;
  return states;
}

/// On all tiers.
workload::StateBytes all_states(const Training& training, const Plan& plan, const Parameters& held,
                                const workload::Degrees& degrees) {
  workload::StateBytes states = trained_states(training, plan, held, degrees);
  const Parameters frozen = {.dense = held.frozen_dense, .expert = held.frozen_expert};
  if (frozen.summed() == 0) return states;
  const double in_4_bits = held.nf4 / frozen.summed();
  double stored =
      workload::kNf4Sharded * in_4_bits + stored_bytes(training.dtype) * (1 - in_4_bits);
  if (plan.zero == 3) stored *= shard_of(frozen, degrees) / frozen.summed();
  stored += (workload::kNf4Bytes - workload::kNf4Sharded) * in_4_bits;
  const double trained = 1 - frozen.summed() / held.all();
  states.weights = states.weights * trained + stored * (1 - trained);
  states.gradient *= trained;
  states.optimizer *= trained;
  if (states.update) *states.update *= trained;
  return states;
}

/// The share of gradients that the host keeps.
double gradients_away(const StateTiers& tiers) {
  return tiers.gradients == Tier::kDevice ? 0 : tiers.optimizer.away();
}

}  // namespace

workload::StateBytes states_of(const Training& training, const Plan& plan, const Parameters& held,
                               const workload::Degrees& degrees) {
  workload::StateBytes states = all_states(training, plan, held, degrees);
  states.weights *= 1 - plan.tiers.weights.away();
  states.optimizer *= 1 - plan.tiers.optimizer.away();
  const double kept = 1 - gradients_away(plan.tiers), whole = states.gradient;
  states.gradient *= kept;
  if (kept < 1) states.update = states.update.value_or(whole) * kept;
  return states;
}

workload::Away away_of(const Training& training, const Plan& plan, const Parameters& held,
                       const workload::Degrees& degrees) {
  const workload::StateBytes states = all_states(training, plan, held, degrees);
  const StateTiers& tiers = plan.tiers;
  const double all = held.all();
  workload::Away away;
  away.add(all * states.weights * tiers.weights.away(), tiers.weights.tier == Tier::kNvme);
  away.add(all * states.gradient * gradients_away(tiers), tiers.gradients == Tier::kNvme);
  away.add(all * states.optimizer * tiers.optimizer.away(), tiers.optimizer.tier == Tier::kNvme);
  return away;
}

ParameterTraffic traffic_of(const Training& training, const Plan& plan, std::size_t stages,
                            std::uint32_t microbatches) {
  using When = ParameterTraffic::When;
  ParameterTraffic traffic{.gradient = summed_bytes(training, plan) * plan.compression};
  if (plan.zero == 0) return traffic;
  traffic.sum = CollectiveKind::kReduceScatter;
  traffic.weights =
      plan.zero == 3 ? stored_bytes(training.dtype) : state_bytes(training, plan).weights;
  if (plan.zero == 2 && microbatches > 1) traffic.when = When::kEachBackward;
  if (plan.zero == 3 && stages == 1) traffic.when = When::kLayerByLayer;
  return traffic;
}

}  // namespace rehearse::strategies
