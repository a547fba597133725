#include "models/workload/lift_join.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/workload/lift_update.h"

namespace rehearse::workload::lifting {
namespace {

template <class Visit>
void each_list(Layer& layer, Visit visit) {
  for (std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute, &layer.step})
    visit(*ops);
}

std::vector<Op*> ops_of(Workload& workload) {
  std::vector<Op*> ops;
  for (Layer& layer : workload.layers)
    each_list(layer, [&](std::vector<Op>& list) {
      for (Op& op : list) ops.push_back(&op);
    });
  return ops;
}

/// The same work, whatever its time.
bool alike(const Op& a, const Op& b) {
  return a.kind == b.kind && a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k &&
         a.bytes == b.bytes;
}

/// Ranks that did the same work: the mean of their times, within the least and the most.
/// Ranks with other work are left out, with a note.
Workload mean_of(const std::vector<const LiftedRank*>& ranks, std::vector<std::string>& notes) {
  Workload mean = ranks.front()->lifted.workload;
  const std::vector<Op*> into = ops_of(mean);
  std::vector<double> sums;
  for (const Op* op : into) sums.push_back(op->measured->value.s());
  double count = 1;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    Workload other = ranks[r]->lifted.workload;
    const std::vector<Op*> ops = ops_of(other);
    if (!std::equal(ops.begin(), ops.end(), into.begin(), into.end(),
                    [](const Op* a, const Op* b) { return alike(*a, *b); })) {
      notes.push_back(fmt::format("{} works on other shapes than {}: it is left out",
                                  ranks[r]->traffic.source, ranks.front()->traffic.source));
      continue;
    }
    ++count;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      sums[i] += ops[i]->measured->value.s();
      into[i]->measured->low = std::min(into[i]->measured->low, ops[i]->measured->low);
      into[i]->measured->high = std::max(into[i]->measured->high, ops[i]->measured->high);
    }
  }
  if (count > 1)
    for (std::size_t i = 0; i < sums.size(); ++i)
      into[i]->measured->value = Seconds::s(sums[i] / count);
  return mean;
}

bool sums_partially(const Op& op) { return !op.weight_gradient && op.tensor == Extent::kK; }

/// Follows the ops of a pass: whether activations are divided by heads or features.
class Region {
 public:
  void pass(const Op& op) {
    const bool product = op.kind == OpKind::kGemm || op.kind == OpKind::kConvolution;
    if (sums_partially(op))
      inside_ = false;
    else if (op.tensor != Extent::kNone)
      inside_ = inside_ || !op.weight_gradient;
    else if (product && !op.core && !op.weight_gradient)
      inside_ = false;
  }
  bool inside() const { return inside_; }

 private:
  bool inside_ = false;
};

/// Multiplies the extents of a pass; `tokens`: ops outside of divided regions were divided by
/// tokens. Returns whether the pass ends inside such a region.
bool join_pass(std::vector<Op>& ops, double degree, bool tokens) {
  Region region;
  for (Op& op : ops) {
    region.pass(op);
    if (op.tensor != Extent::kNone)
      divide(op, op.tensor, 1 / degree);
    else if (tokens && !region.inside())
      divide(op, op.samples, 1 / degree);
  }
  return region.inside();
}

/// Multiplies what tensor parallelism divided.
void join_tensor(Workload& workload, double degree, bool tokens) {
  for (Layer& layer : workload.layers) {
    const bool divided_output = join_pass(layer.forward, degree, tokens);
    join_pass(layer.backward, degree, tokens);
    join_pass(layer.recompute, degree, tokens);
    for (Weights& weights : layer.weights)
      if (weights.tensor) weights.count *= degree;
    double divided = 0, joined = 0;
    for (SavedActivation& saved : layer.saved) {
      divided += saved.bytes.b();
      if (saved.tensor || tokens) saved.bytes = saved.bytes * degree;
      joined += saved.bytes.b();
    }
    if (divided > 0) layer.recomputed = layer.recomputed * (joined / divided);
    if (tokens || divided_output) layer.output = layer.output * degree;
  }
  for (Workload::Divisor& divisor : workload.divided_by_tensor) divisor.count *= degree;
}

/// A rank computed its own experts for the tokens of all ranks.
void join_experts(Workload& workload, double degree) {
  for (Layer& layer : workload.layers) {
    each_list(layer, [&](std::vector<Op>& ops) {
      for (Op& op : ops) {
        if (!op.expert || op.kind != OpKind::kGemm) continue;
        divide(op, Extent::kBatch, 1 / degree);
        divide(op, op.samples, degree);
      }
    });
    for (Weights& weights : layer.weights)
      if (weights.expert) weights.count *= degree;
  }
  workload.experts *= static_cast<std::uint32_t>(degree);
}

/// Multiplies what context parallelism divided: the tokens of all operations; of attention by heads
/// its heads, else its queries.
void join_context(Workload& workload, double degree, bool by_heads) {
  for (Layer& layer : workload.layers) {
    for (std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute})
      for (Op& op : *ops) {
        const bool queries = op.kind == OpKind::kAttention && !by_heads;
        divide(op, queries ? Extent::kM : op.samples, 1 / degree);
      }
    for (SavedActivation& saved : layer.saved) saved.bytes = saved.bytes * degree;
    layer.recomputed = layer.recomputed * degree;
    layer.output = layer.output * degree;
  }
  workload.tokens_per_sample *= degree;
  for (Workload::Divisor& divisor : workload.divided_by_tensor)
    if (by_heads && divisor.name == "heads") divisor.count *= degree;
}

/// A rank updated that many parameters of each layer.
void join_updates(Workload& workload, const std::vector<double>& updated) {
  for (std::size_t l = 0; l < updated.size(); ++l)
    for (Op& op : workload.layers[l].step)
      if (updated[l] > 0) divide(op, Extent::kBytes, updated[l] / workload.layers[l].parameters());
}

/// Appends the layers of a chunk of a stage to those of the earlier ones.
void append_layers(Workload& whole, const Workload& stage, std::uint32_t number,
                   const std::vector<std::uint32_t>& chunk_of, std::uint32_t chunk) {
  for (std::size_t i = 0; i < stage.layers.size(); ++i) {
    if (chunk_of[i] != chunk) continue;
    Layer layer = stage.layers[i];
    const bool known = std::any_of(whole.layers.begin(), whole.layers.end(),
                                   [&](const Layer& other) { return other.name == layer.name; });
    if (known) layer.name = fmt::format("{} of stage {}", layer.name, number);
    each_list(layer, [&](std::vector<Op>& ops) {
      for (Op& op : ops) op.name = whole.names[whole.names.intern(op.name)];
    });
    whole.layers.push_back(std::move(layer));
  }
}

/// What a later stage says of the whole model.
void add_facts(Workload& whole, const Workload& stage) {
  whole.tokens_per_sample = std::max(whole.tokens_per_sample, stage.tokens_per_sample);
  whole.experts = std::max(whole.experts, stage.experts);
  whole.experts_per_token = std::max(whole.experts_per_token, stage.experts_per_token);
  whole.tied_embedding = whole.tied_embedding || stage.tied_embedding;
  for (const Workload::Divisor& divisor : stage.divided_by_tensor) {
    const auto same =
        std::find_if(whole.divided_by_tensor.begin(), whole.divided_by_tensor.end(),
                     [&](const Workload::Divisor& other) { return other.name == divisor.name; });
    if (same == whole.divided_by_tensor.end())
      whole.divided_by_tensor.push_back(divisor);
    else
      same->count = std::min(same->count, divisor.count);
  }
}

}  // namespace

Result<Workload> join_ranks(const std::vector<LiftedRank>& ranks, const FoundPlan& found,
                            std::vector<std::string>& notes) {
  const RecordedPlan& plan = found.plan;
  std::vector<Workload> stages;
  std::vector<const LiftedRank*> first_of;  // by stage
  for (std::uint32_t s = 0; s < plan.pipeline; ++s) {
    std::vector<const LiftedRank*> of_stage;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (found.stage_of[r] == s) of_stage.push_back(&ranks[r]);
    const LiftedRank &first = *of_stage.front(), &earlier = ranks.front();
    Workload stage = mean_of(of_stage, notes);
    const std::vector<double> updated = updated_parameters(stage, plan);
    if (plan.expert > 1) join_experts(stage, plan.expert);
    if (plan.tensor > 1) join_tensor(stage, plan.tensor, plan.sequence_parallel);
    if (plan.context > 1) join_context(stage, plan.context, plan.context_by_heads);
    join_updates(stage, updated);
    if (stage.samples != earlier.lifted.workload.samples ||
        first.traffic.microbatches != earlier.traffic.microbatches)
      return fail_in(first.traffic.source,
                     fmt::format("computes {} microbatches of {:g} samples, and {} computes {} of "
                                 "{:g}",
                                 first.traffic.microbatches, stage.samples, earlier.traffic.source,
                                 earlier.traffic.microbatches, earlier.lifted.workload.samples),
                     "the same on each stage, or `samples`");
    stages.push_back(std::move(stage));
    first_of.push_back(&first);
  }
  Workload whole = stages.front();
  whole.layers.clear();
  for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk)
    for (std::uint32_t s = 0; s < plan.pipeline; ++s)
      append_layers(whole, stages[s], s, first_of[s]->chunks, chunk);
  for (const Workload& stage : stages) add_facts(whole, stage);
  return whole;
}

}  // namespace rehearse::workload::lifting
