#include <algorithm>
#include <span>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Axis, workload::Extent, workload::GatheredInputs, workload::Issue, workload::Layer,
    workload::Op, workload::OpKind, workload::SavedActivation;

/// Held at once while a layer runs: its gathered input, the gathered gradient of its output, and a
/// product that waits to be scattered.
constexpr double kWholeActivations = 3;

bool sums_partially(const Op& op) {
  return !op.weight_gradient && op.tensor == Extent::kK &&
         (op.kind == OpKind::kGemm || op.kind == OpKind::kConvolution ||
          op.kind == OpKind::kGather);
}

Bytes output_of(const Op& op) { return Bytes::b(stored_bytes(op.dtype) * output_elements(op)); }

/// The ops of one phase, rewritten.
class Region {
 public:
  Region(double degree, const Plan& plan, bool saves_inputs, std::vector<Op>& result)
      : degree_(degree),
        sequence_(plan.sequence_parallel),
        saves_inputs_(saves_inputs),
        overlaps_(plan.overlap_tensor),
        asynchronous_(plan.asynchronous_tensor),
        quantised_(plan.quantised_gathers),
        result_(result) {}

  void rewrite(std::span<const Op> ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (sums_partially(ops[i]))
        contracted(ops, i);
      else if (ops[i].tensor != Extent::kNone)
        divided(ops[i]);
      else
        replicated(ops[i]);
    }
  }

 private:
  /// Whether the output is added to that of a later op before any op uses it.
  static bool shares_sum(std::span<const Op> ops, std::size_t i) {
    for (std::size_t next = i + 1; next < ops.size(); ++next) {
      const Op& op = ops[next];
      if (sums_partially(op))
        return op.m == ops[i].m && op.n == ops[i].n && op.batch == ops[i].batch;
      if (!op.weight_gradient && op.kind != OpKind::kElementwise) return false;
    }
    return false;
  }

  void push(CollectiveKind kind, std::string_view name, Bytes bytes, Issue issue) {
    result_.push_back(collective(name, kind, Axis::kTensor, bytes.b(), issue));
  }
  /// Gathers elements that become an operand of the op.
  void gather(const Op& op, double elements, Issue issue) {
    const double element = quantised_ ? workload::bytes_of(op.dtype) : stored_bytes(op.dtype);
    push(CollectiveKind::kAllGather, "gather tokens", Bytes::b(element * elements), issue);
  }
  void sum(Bytes bytes, Issue issue) {
    if (sequence_)
      push(CollectiveKind::kReduceScatter, "sum and scatter tokens", bytes, issue);
    else
      push(CollectiveKind::kAllReduce, "sum partial results", bytes, issue);
  }
  void put(Op op) {
    workload::divide(op, op.tensor, degree_);
    result_.push_back(op);
  }

  void contracted(std::span<const Op> ops, std::size_t i) {
    const Op& op = ops[i];
    std::size_t next = i + 1;
    while (next < ops.size() && ops[next].communicates()) ++next;
    const bool gradients_follow = next < ops.size() && ops[next].weight_gradient;
    const bool postponed = shares_sum(ops, i);
    // An input that was kept as a share is gathered alongside its gradient.
    if (sequence_ && gradients_follow && !summing_ && !saves_inputs_)
      gather(op, output_elements(op), Issue::kOverlapNext);
    summing_ = postponed;
    const bool ahead = asynchronous_ && !gradients_follow && is_matrix(op) && !postponed;
    if (ahead) sum(output_of(op), Issue::kOverlapNext);
    put(op);
    inside_ = postponed;
    if (postponed || ahead) return;
    const bool overlaps = overlaps_ && gradients_follow && next == i + 1;
    sum(output_of(op), overlaps ? Issue::kOverlapNext : Issue::kInline);
  }

  void divided(const Op& op) {
    if (sequence_ && !inside_ && op.kind == OpKind::kGather && op.weight_gradient)
      gather(op, output_elements(op), Issue::kInline);
    if (!op.weight_gradient) {
      const bool product = op.kind == OpKind::kGemm || op.kind == OpKind::kConvolution;
      if (sequence_ && !inside_ && product)
        gather(op, input_elements(op), asynchronous_ ? Issue::kOverlapNext : Issue::kInline);
      inside_ = true;
    }
    put(op);
  }

  void replicated(Op op) {
    // An undivided weight matrix takes whole features: it is on a branch outside the region.
    if (is_matrix(op) && !op.core && !op.weight_gradient) inside_ = false;
    if (sequence_ && !inside_) workload::divide(op, op.samples, degree_);
    result_.push_back(op);
  }

  double degree_;
  bool sequence_;
  bool saves_inputs_;
  bool overlaps_;
  bool asynchronous_;
  bool quantised_;
  std::vector<Op>& result_;
  bool inside_ = false;   // activations are divided by heads or features, not by tokens
  bool summing_ = false;  // some of the ops that share a sum have been
};

std::vector<Op> rewritten(const std::vector<Op>& ops, bool saves_inputs, const RankSetting& s) {
  std::vector<Op> result;
  result.reserve(ops.size() + 8);
  Region(s.degrees.tensor, *s.plan, saves_inputs, result).rewrite(ops);
  return result;
}

bool saves_inputs(const Layer& layer) {
  return std::ranges::any_of(layer.saved, [](const SavedActivation& saved) {
    return saved.gathered == GatheredInputs::kSaved;
  });
}

/// Divides a saved activation among `t` ranks.
void divide(SavedActivation& saved, double t, bool sequence_parallel) {
  if (!saved.tensor && !sequence_parallel) return;
  if (!saved.tensor && saved.gathered == GatheredInputs::kSaved) return;
  if (!saved.tensor && saved.gathered == GatheredInputs::kUnknown) saved.unsure = saved.bytes;
  saved.bytes = saved.bytes / t + saved.unsure;
}

}  // namespace

Result<workload::Workload> tensor_parallel(workload::Workload workload,
                                           const RankSetting& setting) {
  const double t = setting.degrees.tensor;
  for (Layer& layer : workload.layers) {
    const bool whole = saves_inputs(layer);
    layer.forward = rewritten(layer.forward, whole, setting);
    layer.backward = rewritten(layer.backward, whole, setting);
    layer.recompute = rewritten(layer.recompute, whole, setting);
    const double parameters = layer.parameters();
    for (workload::Weights& w : layer.weights)
      if (w.tensor) w.count /= t;
    follow_parameters(layer, parameters);
    for (SavedActivation& saved : layer.saved) divide(saved, t, setting.plan->sequence_parallel);
    if (setting.plan->sequence_parallel) layer.whole = layer.output * kWholeActivations;
    layer.output = layer.output / t;
  }
  return workload;
}

}  // namespace rehearse::strategies
