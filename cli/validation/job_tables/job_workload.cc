#include "cli/validation/job_tables/job_workload.h"

#include <algorithm>

#include "strategies/lay_out.h"

namespace rehearse::cli {
namespace {

using workload::Kept;
using workload::Layer;

/// Bytes per logit of torchtitan's loss where tensor parallelism divides the vocabulary: its
/// reductions over ranks are not fused. Inferred from the peak of one published run.
constexpr double kLossParallelBytes = 22;

bool is_torchtitan(const JobRow& row) {
  return row.implementation == Implementation::kTorchtitan ||
         row.implementation == Implementation::kTorchtitanCompiled;
}

/// torchtitan counts the matrix products of a block and saves the first, third, fifth and seventh:
/// queries, values, the first of two halves of the feed-forward input, the block's output; beside
/// them attention. 8.5 + 2 f/h bytes per element of a hidden state in all. All else runs again.
/// Under tensor parallelism the sums over ranks are saved, too, and nobody needs the product before
/// that of attention's output.
void save_every_second_product(Layer& block, const workload::Transformer& model, bool sums) {
  for (const workload::Op& op : block.forward) {
    const bool saved = op.name == "query" || op.name == "value" || op.name == "attention" ||
                       op.name == "gate" || op.name == "down" || (sums && op.name == "projection");
    if (!saved) block.recompute.push_back(op);
  }
  const double group = static_cast<double>(model.heads) / std::max(1U, model.kv_heads);
  std::vector<Kept> kept;
  Bytes input = Bytes::b(0);
  for (Kept k : block.kept) {
    const auto split = [&](double share) {
      Kept rest = k;
      rest.bytes = k.bytes * (1 - share);
      rest.core = true;
      k.bytes = k.bytes * share;
      kept.push_back(rest);
    };
    if (k.name == "input") input = k.bytes;
    if (k.name == "keys and values")
      split(1 / (2 * group));
    else if (k.name == "activation input")
      split(0.5);
    else if (k.name != "input" && k.name != "queries" && k.name != "context" &&
             k.name != "log-sum-exp")
      k.core = true;
    if (k.name == "log-sum-exp") k.core = false;
    kept.push_back(k);
  }
  kept.push_back({.name = "feed-forward output", .bytes = input});
  block.kept = std::move(kept);
}

}  // namespace

workload::Transformer transformer_of(const JobRow& row) {
  const ModelShape& m = row.model;
  workload::Transformer t{.name = row.name};
  t.hidden = m.hidden;
  t.layers = m.layers;
  t.heads = m.heads;
  t.kv_heads = m.kv_heads;
  t.head_size = m.head_size;
  t.feed_forward = m.feed_forward;
  t.vocabulary = m.vocabulary;
  t.sequence = m.sequence;
  t.gated = m.gated;
  t.activation = m.gated ? workload::Activation::kSilu : workload::Activation::kGelu;
  t.norm = m.rms_norm ? workload::Norm::kRms : workload::Norm::kLayer;
  t.positions = m.learned_positions ? workload::Positions::kLearned : workload::Positions::kRotary;
  t.tied_embedding = m.tied_embedding;
  t.query_bias = t.output_bias = t.linear_bias = m.biases;
  if (m.experts > 0)
    t.mixture = workload::Mixture{.experts = m.experts,
                                  .per_token = static_cast<double>(m.experts_per_token),
                                  .feed_forward = m.feed_forward,
                                  .clamped = m.clamped_experts};
  return t;
}

workload::Implementation implementation_of(const JobRow& row) {
  using workload::Attention;
  using workload::Elementwise;
  using workload::Loss;
  workload::Implementation how{.dtype = row.training.dtype, .fused_experts = row.fused_experts};
  switch (row.implementation) {
    case Implementation::kMegatron2021:
      how.attention = Attention::kUnfused;
      how.dropout = true;
      how.loss = Loss::kMpt;  // half-precision logits and one copy in FP32, in which all else is
      break;
    case Implementation::kMegatron2022:
      how.attention = Attention::kUnfused;
      how.dropout = true;
      how.loss = Loss::kMpt;
      how.fused_accumulation = true;
      break;
    case Implementation::kMegatronFlash:
      how.fused_accumulation = true;
      how.elementwise = Elementwise::kCompiled;
      how.loss = Loss::kFused;
      how.expanded_keys = false;
      break;
    case Implementation::kTorchtitan:
      how.loss = Loss::kEager;
      how.fused_projections = false;
      break;
    case Implementation::kTorchtitanCompiled:
      how.elementwise = Elementwise::kCompiled;
      how.loss = Loss::kCompiled;
      how.fused_projections = false;
      break;
    case Implementation::kLlmFoundry:
      how.loss = Loss::kMpt;
      break;
  }
  return how;
}

Result<workload::Workload> workload_of(const JobRow& row) {
  const workload::Transformer model = transformer_of(row);
  const workload::Implementation how = implementation_of(row);
  Result<workload::Workload> w = workload::transformer(model, how);
  if (!w) return forward(w);
  for (Layer& layer : w->layers)
    for (const workload::Op& op : layer.forward)
      if (std::find(row.recomputed.begin(), row.recomputed.end(), op.name) != row.recomputed.end())
        layer.recompute.push_back(op);
  if (!is_torchtitan(row)) return w;
  for (Layer& layer : w->layers) {
    const bool block = layer.name.find("block") != std::string::npos;
    if (block && row.training.recompute == strategies::Recompute::kSelective)
      save_every_second_product(layer, model, row.plan.tensor > 1);
    if (row.plan.tensor == 1) continue;
    for (Kept& k : layer.kept)
      if (k.transient)
        k.bytes = k.bytes * (kLossParallelBytes / workload::bytes_per_logit(how.loss));
  }
  return w;
}

Result<workload::Layout> layout_of(const JobRow& row) {
  const Result<workload::Workload> w = workload_of(row);
  if (!w) return forward(w);
  return strategies::lay_out(*w, row.training, row.plan);
}

}  // namespace rehearse::cli
