#include <cmath>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Axis, workload::Extent, workload::Issue, workload::Layer, workload::Op,
    workload::OpKind;

/// A stretch of ops from the first expert product to the last, with only memory-bound ops and
/// gradients of expert weights between them.
struct Stretch {
  std::size_t first, last;  // products that are no gradients of weights
  std::size_t end;          // after its last expert op
};

bool is_product(const Op& op) { return op.expert && is_matrix(op) && !op.weight_gradient; }

Stretch stretch_from(const std::vector<Op>& ops, std::size_t first) {
  Stretch found{first, first, first + 1};
  for (std::size_t i = first; i < ops.size(); ++i) {
    if (!ops[i].expert && (is_matrix(ops[i]) || ops[i].communicates())) break;
    if (ops[i].expert) found.end = i + 1;
    if (is_product(ops[i])) found.last = i;
  }
  return found;
}

Op exchange(std::string_view name, double bytes, Issue issue = Issue::kInline) {
  Op op = collective(name, CollectiveKind::kAllToAll, Axis::kExpert, bytes, issue);
  op.samples = Extent::kBytes;
  return op;
}

Op of_experts(std::string_view name, CollectiveKind kind, double bytes, Issue issue) {
  Op op = collective(name, kind, Axis::kExpert, bytes, issue);
  op.expert = true;
  return op;
}

struct Way {
  double degree;
  double load;                   // of the busiest rank's experts
  bool moves_weights;            // instead of tokens
  double weights_bytes;          // of all experts of the layer
  double copies = 1;             // share of computed copies that are sent
  Issue issue = Issue::kInline;  // of exchanges of tokens
};

/// Changes an op that counts tokens of experts, or their weights, to the extents of one rank.
void move_to_rank(Op& op, const Way& way) {
  if (op.expert && !way.moves_weights) {
    if (is_matrix(op)) {
      workload::divide(op, Extent::kBatch, way.degree);
      workload::divide(op, op.samples, 1 / way.degree);
    } else if (op.samples == Extent::kNone) {
      workload::divide(op, Extent::kBytes, way.degree);
      return;  // parameters: no load
    }
  }
  workload::divide(op, op.samples, 1 / way.load);
}

/// Each rank holds some of the tables, or rows, and does their lookups for all ranks: indices of 8
/// bytes are sent there and rows come back; in backward their gradients are sent.
void look_up(Op op, const Way& way, std::vector<Op>& result) {
  const double rows = stored_bytes(op.dtype) * output_elements(op);
  if (op.weight_gradient)
    result.push_back(exchange("gradients of rows", rows));
  else
    result.push_back(exchange("indices of rows", 8 * op.batch * op.m));
  workload::divide(op, Extent::kK, way.degree);
  result.push_back(op);
  if (!op.weight_gradient) result.push_back(exchange("rows", rows));
}

std::vector<Op> rewritten(const std::vector<Op>& ops, const Way& way, bool backward) {
  std::vector<Op> result;
  result.reserve(ops.size() + 4);
  for (std::size_t i = 0; i < ops.size();) {
    if (ops[i].expert && ops[i].kind == OpKind::kGather && way.degree > 1) {
      look_up(ops[i++], way, result);
      continue;
    }
    if (!is_product(ops[i])) {
      Op op = ops[i++];
      if (op.expert) move_to_rank(op, way);
      result.push_back(op);
      continue;
    }
    const Stretch stretch = stretch_from(ops, i);
    const bool tokens = !way.moves_weights && way.degree > 1;
    const Op& first = ops[stretch.first];
    const Op& last = ops[stretch.last];
    if (tokens)
      result.push_back(exchange(
          "tokens to experts",
          stored_bytes(first.dtype) * way.load * way.copies * input_elements(first), way.issue));
    if (way.moves_weights)
      result.push_back(of_experts("gather experts", CollectiveKind::kAllGather, way.weights_bytes,
                                  Issue::kPrefetched));
    for (; i < stretch.end; ++i) {
      Op op = ops[i];
      move_to_rank(op, way);
      result.push_back(op);
      if (i == stretch.last && tokens)
        result.push_back(exchange(
            "tokens from experts",
            stored_bytes(last.dtype) * way.load * way.copies * output_elements(last), way.issue));
    }
    if (way.moves_weights && backward)
      result.push_back(of_experts("scatter gradients of experts", CollectiveKind::kReduceScatter,
                                  way.weights_bytes, Issue::kDeferred));
  }
  return result;
}

/// The number of ranks that hold some of a token's experts, if these are spread evenly and
/// independently over ranks.
double ranks_reached(double ranks, double experts_per_token) {
  return ranks * (1 - std::pow(1 - 1 / ranks, experts_per_token));
}

/// Bytes of the tokens that one exchange of the layer moves.
double token_bytes(const Layer& layer) {
  for (const Op& op : layer.forward)
    if (is_product(op)) return stored_bytes(op.dtype) * input_elements(op);
  return 0;
}

void leave_whole(Layer& layer) {
  for (std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute})
    for (Op& op : *ops)
      if (op.expert) op.tensor = Extent::kNone;
  for (workload::Weights& w : layer.weights)
    if (w.expert) w.tensor = false;
}

}  // namespace

Result<workload::Workload> expert_parallel(workload::Workload workload,
                                           const RankSetting& setting) {
  const Plan& plan = *setting.plan;
  const double e = setting.degrees.expert, chosen = workload.experts_per_token;
  for (Layer& layer : workload.layers) {
    double weights = 0;
    for (const workload::Weights& w : layer.weights)
      if (w.expert && !w.sparse) weights += w.count * stored_bytes(setting.training->dtype);
    const bool cheaper = 3 * weights < 4 * token_bytes(layer) * plan.capacity_factor;
    Way way{
        .degree = e,
        .load = plan.capacity_factor != 1 ? plan.capacity_factor
                : e > 1                   ? plan.expert_imbalance
                                          : 1,
        .moves_weights = e > 1 && (plan.expert_exchange == ExpertExchange::kWeights ||
                                   (plan.expert_exchange == ExpertExchange::kCheaper && cheaper)),
        .weights_bytes = weights,
        .copies = plan.expert_exchange == ExpertExchange::kTokensOnce && chosen > 0
                      ? ranks_reached(e, chosen) / chosen
                      : 1,
        .issue = plan.overlap_experts ? Issue::kDeferred : Issue::kInline};
    if (way.moves_weights && plan.capacity_factor == 1) way.load = 1;
    if (setting.degrees.whole_experts) leave_whole(layer);
    layer.forward = rewritten(layer.forward, way, false);
    layer.backward = rewritten(layer.backward, way, true);
    layer.recompute = rewritten(layer.recompute, way, false);
    const double parameters = layer.parameters();
    for (workload::Weights& w : layer.weights)
      if (w.expert) w.count /= e;
    follow_parameters(layer, parameters);
  }
  return workload;
}

}  // namespace rehearse::strategies
