#include "models/workload/lift_ops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace rehearse::workload::lifting {
namespace {

bool divides(double divisor, double whole) {
  return divisor >= 1 && whole >= divisor && std::fmod(whole, divisor) == 0;
}

std::vector<Operand> tensors_of(const Unit& unit) {
  std::vector<Operand> tensors;
  for (const Operand& operand : unit.operands)
    if (operand.is_tensor() && operand.is_floating()) tensors.push_back(operand);
  return tensors;
}

/// Broadcast: the operand with most elements.
Operand largest(const std::vector<Operand>& operands) {
  Operand best;
  for (const Operand& operand : operands)
    if (operand.elements() > best.elements()) best = operand;
  return best;
}

bool says(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

Estimate<Seconds> point(Seconds time) { return {time, time, time, Provenance::kRecorded}; }

}  // namespace

double find_samples(const std::vector<Unit>& units) {
  std::map<double, std::size_t> seen;
  std::set<double> texts;  // leading extents of the rows that are looked up
  for (const Unit& unit : units) {
    const Role role = role_of(unit.name);
    if (unit.phase != Phase::kForward) continue;
    if (role == Role::kGather) {
      if (unit.operands.size() > 1 && unit.operands[1].extents.size() == 2)
        texts.insert(unit.operands[1].extents.front());
      continue;
    }
    const std::vector<Operand> tensors = tensors_of(unit);
    // Of two extents and fewer, the first may count samples and tokens together, or channels.
    if (tensors.empty() || tensors.front().extents.size() < 3) continue;
    ++seen[tensors.front().extents.front()];
  }
  // Attention may run tokens first, and then samples (nn.MultiheadAttention).
  if (std::ranges::any_of(texts, [&](double extent) { return seen.contains(extent); }))
    std::erase_if(seen, [&](const auto& extent) { return !texts.contains(extent.first); });
  if (seen.empty())
    for (const Unit& unit : units)
      if (unit.phase == Phase::kForward && role_of(unit.name) != Role::kPlain &&
          role_of(unit.name) != Role::kGather)
        if (const auto tensors = tensors_of(unit);
            !tensors.empty() && largest(tensors).extents.size() == 2)
          if (const auto factors = factors_of(unit.name, unit.operands))
            ++seen[factors->a.extents.front()];
  const auto most =
      std::ranges::max_element(seen, {}, [](const auto& extent) { return extent.second; });
  return most == seen.end() ? 1 : most->first;
}

double find_tokens(const std::vector<Unit>& units, double samples) {
  for (const Unit& unit : units)
    if (unit.phase == Phase::kForward && role_of(unit.name) == Role::kGather &&
        unit.operands.size() > 1 && unit.operands[1].extents.size() == 2 &&
        unit.operands[1].extents[0] == samples)
      return unit.operands[1].extents[1];
  if (std::none_of(units.begin(), units.end(), [](const Unit& unit) {
        return unit.phase == Phase::kForward && role_of(unit.name) == Role::kAttention;
      }))
    return 0;
  for (const Unit& unit : units)
    if (unit.phase == Phase::kForward && role_of(unit.name) == Role::kLinear &&
        !unit.operands.empty() && unit.operands[0].extents.size() == 3 &&
        unit.operands[0].extents[0] == samples)
      return unit.operands[0].extents[1];
  return 0;
}

OpMaker::OpMaker(const Recording& recording, const StepUnits& step, NamePool& names, double samples)
    : r_(recording),
      step_(step),
      names_(names),
      samples_(samples),
      tokens_(find_tokens(step.units, samples)) {
  for (const Unit& unit : step.units)
    outputs_.push_back(unit.phase == Phase::kForward || unit.phase == Phase::kRecompute
                           ? find_output(unit)
                           : Operand{});
  const auto is_parameter = [&](const Operand& operand) {
    return std::any_of(step.gradients.begin(), step.gradients.end(), [&](const Gradient& gradient) {
      std::vector<double> other = gradient.parameter.extents;
      if (other == operand.extents) return true;
      if (other.size() == 3) std::swap(other[1], other[2]);
      return other == operand.extents;
    });
  };
  experts_.assign(step.units.size(), 0);
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kForward || role_of(unit.name) != Role::kMatrix) continue;
    const auto factors = factors_of(unit.name, unit.operands);
    if (!factors || factors->a.extents.size() != 3 || factors->b.extents.size() != 3 ||
        !is_parameter(factors->b))
      continue;
    experts_[u] = 1;
    by_expert_.emplace(factors->a.extents[0], factors->a.extents[1]);
  }
}

bool OpMaker::of_experts(const Unit& unit) const {
  if (unit.phase == Phase::kForward)
    return experts_[static_cast<std::size_t>(&unit - step_.units.data())] != 0;
  return unit.forward && experts_[*unit.forward] != 0 && role_of(unit.name) == Role::kMatrix;
}

bool OpMaker::holds_samples(const Operand& operand) const {
  if (!operand.is_tensor()) return false;
  return divides(samples_, operand.extents.front()) ||
         (operand.extents.size() == 3 &&
          ((operand.extents[0] == tokens_ && operand.extents[1] == samples_) ||
           by_expert_.contains({operand.extents[0], operand.extents[1]})));
}

/// Scores of attention: a matrix of tokens by tokens for each sample and head. Three extents that begin
/// with the samples are activations as wide as a sample is long.
bool OpMaker::holds_scores(const Operand& operand) const {
  const std::vector<double>& extents = operand.extents;
  return tokens_ > 1 && extents.size() >= 3 && operand.last() == operand.last(1) &&
         divides(tokens_, operand.last()) && (extents.size() > 3 || extents.front() != samples_);
}

/// The operand of the next operator on the thread that can be the output: same samples and rank,
/// and this number of channels.
Operand OpMaker::next_operand(const Unit& unit, const Operand& input, double channels) const {
  const trace::HostOp& host = r_.host(unit.op);
  const std::size_t rank = input.extents.size();
  for (const replay::HostThread& thread : r_.threads()) {
    if (thread.id != host.thread) continue;
    auto at = std::lower_bound(thread.ops.begin(), thread.ops.end(), host.end(),
                               [&](HostIndex i, Nanoseconds t) { return r_.host(i).start < t; });
    constexpr int kNear = 400;  // operators looked at
    for (int k = 0; at != thread.ops.end() && k < kNear; ++at) {
      const trace::HostOp& next = r_.host(*at);
      if (next.kind != trace::HostKind::kOperator || !next.inputs) continue;
      ++k;
      const std::vector<Operand> operands = operands_of(r_, next);
      if (operands.empty() || operands.front().extents.size() != rank) continue;
      const Operand& found = operands.front();
      if (found.extents[0] == input.extents[0] && found.extents[1] == channels) return found;
    }
  }
  return {};
}

Operand OpMaker::find_output(const Unit& unit) const {
  const std::vector<Operand> tensors = tensors_of(unit);
  if (tensors.empty()) return {};
  Operand out = tensors.front();
  const auto is = [&](std::string_view name) { return short_name(unit.name) == name; };
  switch (role_of(unit.name)) {
    case Role::kConvolution:
      if (tensors.size() < 2 || out.extents.size() < 3) return {};
      return next_operand(unit, out, tensors[1].extents[0]);
    case Role::kPool:
      if (out.extents.size() < 3) return {};
      return next_operand(unit, out, out.extents[1]);
    case Role::kLinear:
    case Role::kMatrix: {
      const auto factors = factors_of(unit.name, unit.operands);
      if (!factors) return {};
      out = factors->a;
      out.extents.back() = factors->b.last();
      return out;
    }
    case Role::kGather:
      if (unit.operands.size() < 2 || out.extents.size() != 2) return {};
      out.extents = unit.operands[1].extents;
      out.extents.push_back(unit.operands[0].last());
      return out;
    case Role::kAttention:
    case Role::kNorm:
    case Role::kSoftmax: return out;
    case Role::kPlain: break;
  }
  if (is("mean") || is("sum")) return {};
  if (is("cat") || is("stack")) {
    double elements = 0;
    for (const Operand& operand : tensors) elements += operand.elements();
    out.extents = {out.extents.front(), elements / out.extents.front()};
    return out;
  }
  return largest(tensors);
}

std::vector<Operand> OpMaker::weights(std::size_t index) const {
  const Unit& unit = step_.units[index];
  const std::vector<Operand>& operands = unit.operands;
  std::vector<Operand> found;
  const auto take = [&](std::size_t place, std::size_t rank) {
    if (place < operands.size() && operands[place].is_floating() &&
        operands[place].extents.size() >= rank)
      found.push_back(operands[place]);
  };
  switch (role_of(unit.name)) {
    case Role::kLinear:
    case Role::kConvolution:
      take(1, 2);
      if (operands.size() > 2 && operands[2].extents.size() == 1) take(2, 1);
      break;
    case Role::kMatrix:
      if (const auto factors = factors_of(unit.name, unit.operands);
          factors && (factors->b.extents.size() == 2 || of_experts(unit))) {
        found.push_back(factors->b);
        if (operands[0].extents.size() == 1) take(0, 1);
      }
      break;
    case Role::kNorm:
      for (std::size_t i = 1; i < operands.size() && found.size() < 2; ++i)
        if (operands[i].extents.size() == 1) take(i, 1);
      break;
    case Role::kGather:
      if (!operands.empty() && operands[0].extents.size() == 2) take(0, 2);
      break;
    case Role::kPlain:
      // A scale or a shift of the last extent: the remainder of a norm that the framework composed.
      if (short_name(unit.name) == "mul" || short_name(unit.name) == "add")
        for (std::size_t i = 0; i < 2 && operands.size() >= 2; ++i)
          if (operands[i].extents.size() == 1 && operands[1 - i].extents.size() > 1 &&
              operands[i].last() == operands[1 - i].last() && operands[i].last() > 1)
            take(i, 1);
      break;
    case Role::kAttention:
    case Role::kSoftmax:
    case Role::kPool: break;
  }
  return found;
}

bool OpMaker::shape_matrix(const Unit& unit, Op& op) const {
  const auto factors = factors_of(unit.name, unit.operands);
  if (!factors) return false;
  const auto& [a, b] = *factors;
  op.kind = OpKind::kGemm;
  op.k = a.last();
  op.n = b.last();
  if (b.extents.size() == 2) {
    op.m = a.elements() / op.k;
    if (holds_samples(a)) op.samples = Extent::kM;
  } else {
    op.m = a.last(1);
    op.batch = std::max(a.elements() / (op.m * op.k), b.elements() / (op.k * op.n));
    op.expert = of_experts(unit);
    if (op.expert)
      op.samples = Extent::kM;
    else if (holds_samples(a) || holds_samples(b))
      op.samples = Extent::kBatch;
  }
  return op.m > 0 && op.n > 0 && op.k > 0;
}

bool OpMaker::shape_convolution(const Unit& unit, std::size_t index, Op& op) const {
  const std::vector<Operand> tensors = tensors_of(unit);
  const Operand& out = outputs_[index];
  if (tensors.size() < 2 || !out.is_tensor() || tensors[1].extents.size() < 3 ||
      tensors[0].extents.size() != tensors[1].extents.size())
    return false;
  const Operand &in = tensors[0], &weight = tensors[1];
  const double groups = in.extents[1] / weight.extents[1];
  if (!(groups >= 1) || std::fmod(groups, 1) != 0) return false;  // transposed
  op.kind = OpKind::kConvolution;
  op.batch = groups;
  op.m = out.elements() / out.extents[1];
  op.n = weight.extents[0] / groups;
  op.k = weight.elements() / weight.extents[0];
  op.bytes = Bytes::b(in.bytes() + weight.bytes() + out.bytes());
  if (holds_samples(in)) op.samples = Extent::kM;
  return op.m > 0 && op.n > 0 && op.k > 0;
}

bool OpMaker::shape_attention(const Unit& unit, Op& op) const {
  const std::vector<Operand> tensors = tensors_of(unit);
  if (tensors.size() < 3 || tensors[0].extents.size() != 4 || tensors[1].extents.size() != 4)
    return false;
  // scaled_dot_product: samples, heads, sequence, width; the kernels beneath: heads third.
  const bool heads_second = unit.name.find("scaled_dot_product") != std::string_view::npos;
  const std::size_t heads = heads_second ? 1 : 2, sequence = heads_second ? 2 : 1;
  const Operand &query = tensors[0], &key = tensors[1];
  op.kind = OpKind::kAttention;
  op.batch = query.extents[0] * query.extents[heads];
  op.m = query.extents[sequence];
  op.n = key.extents[sequence] * unit.ring;
  op.k = query.extents[3];
  if (holds_samples(query)) op.samples = Extent::kBatch;
  op.core = true;
  return op.batch > 0 && op.m > 0 && op.n > 0 && op.k > 0;
}

/// Norms and softmaxes, by rows; gathers of rows.
bool OpMaker::shape_rows(const Unit& unit, Op& op) const {
  const std::vector<Operand> tensors = tensors_of(unit);
  if (tensors.empty()) return false;
  const Operand& in = tensors.front();
  if (role_of(unit.name) == Role::kGather) {
    if (unit.operands.size() < 2 || in.extents.size() != 2 || !unit.operands[1].is_tensor())
      return false;
    op.kind = OpKind::kGather;
    op.m = unit.operands[1].elements();
    op.n = in.last();
    op.k = in.extents.front();
    if (holds_samples(unit.operands[1])) op.samples = Extent::kM;
    return true;
  }
  op.kind = role_of(unit.name) == Role::kNorm ? OpKind::kNorm : OpKind::kSoftmax;
  shape_bytes(unit, op);
  op.width = in.last();
  if (unit.name.find("atch") != std::string_view::npos && in.extents.size() > 1)
    op.width = in.elements() / in.extents[1];  // of a channel
  return true;
}

/// Inputs, and an output as large as the largest of them.
void OpMaker::shape_bytes(const Unit& unit, Op& op) const {
  double bytes = 0;
  bool samples = false;
  for (const Operand& operand : unit.operands) {
    bytes += operand.bytes();
    samples = samples || holds_samples(operand);
    op.core = op.core || (holds_samples(operand) && holds_scores(operand));
  }
  const std::string_view name = short_name(unit.name);
  if (name != "copy_" && name != "fill_" && name != "zero_")
    bytes += largest(unit.operands).bytes();
  op.bytes = Bytes::b(bytes);
  if (samples) op.samples = Extent::kBytes;
}

/// The number of earlier backward units of this name with the same node.
std::size_t OpMaker::place_in_node(std::size_t index) const {
  const Unit& unit = step_.units[index];
  std::size_t place = 0;
  for (std::size_t u = 0; u < index; ++u)
    if (step_.units[u].node == unit.node && step_.units[u].name == unit.name) ++place;
  return place;
}

/// Distinguished by the contracted extent: for the gradient of weights, the rows of the forward
/// operation.
void OpMaker::matrix_backward(std::size_t index, Op& op) const {
  const Unit& unit = step_.units[index];
  op.samples = Extent::kNone;
  if (!unit.forward || !unit.node) return;
  const Unit& forward = step_.units[*unit.forward];
  Op before{.name = "", .kind = OpKind::kElementwise};
  if (!shape_matrix(forward, before)) return;
  if (!before.expert && (before.batch > 1 || op.batch > 1)) {
    if (before.samples != Extent::kNone) op.samples = Extent::kBatch;
    op.core = true;
    return;
  }
  const bool inputs = op.m == before.m && op.k == before.n && op.n == before.k;
  op.weight_gradient = op.k == before.m && (!inputs || place_in_node(index) > 0);
  if (before.samples != Extent::kNone) op.samples = op.weight_gradient ? Extent::kK : Extent::kM;
}

/// Distinguished by the names of its kernels; those that prepare belong to the next that computes.
/// If no name decides, both take half: they cost the same multiplications.
std::vector<Op> OpMaker::convolution_backward(const Unit& unit, Op op) const {
  Op before{.name = "", .kind = OpKind::kElementwise};
  if (!unit.forward || !shape_convolution(step_.units[*unit.forward], *unit.forward, before))
    return {op};
  Op inputs = op, weights = op;
  for (Op* both : {&inputs, &weights}) {
    both->kind = OpKind::kConvolution;
    both->batch = before.batch;
    both->bytes = before.bytes;
  }
  inputs.m = before.m;
  inputs.n = before.k;
  inputs.k = before.n;
  inputs.samples = before.samples == Extent::kM ? Extent::kM : Extent::kNone;
  weights.m = before.n;
  weights.n = before.k;
  weights.k = before.m;
  weights.samples = before.samples == Extent::kM ? Extent::kK : Extent::kNone;
  weights.weight_gradient = true;
  inputs.name = "convolution_backward_input";
  weights.name = "convolution_backward_weight";
  if (unit.name.ends_with("_input")) return {inputs};
  if (unit.name.ends_with("_weight")) return {weights};

  Nanoseconds of_inputs{0}, of_weights{0}, open{0};
  double n_inputs = 0, n_weights = 0, n_open = 0;
  bool last_is_weights = false;
  for (const GpuIndex i : unit.device) {
    const std::string_view name = r_.name(r_.gpu(i));
    open += r_.gpu(i).duration;
    ++n_open;
    const bool weight = says(name, {"wgrad", "Wgrad", "bwd_weight", "BwdWeight", "BwdWrW", "wrw"});
    if (!weight && !says(name, {"dgrad", "Dgrad", "bwd_data", "BwdData", "bwd"})) continue;
    (weight ? of_weights : of_inputs) += open;
    (weight ? n_weights : n_inputs) += n_open;
    last_is_weights = weight;
    open = Nanoseconds{0};
    n_open = 0;
  }
  if (n_inputs + n_weights == 0) {
    inputs.measured = weights.measured = point(unit.time.seconds() / 2);
    inputs.kernels = weights.kernels = static_cast<double>(unit.device.size()) / 2;
    return {inputs, weights};
  }
  (last_is_weights ? of_weights : of_inputs) += open;
  (last_is_weights ? n_weights : n_inputs) += n_open;
  inputs.measured = point(of_inputs.seconds());
  inputs.kernels = n_inputs;
  weights.measured = point(of_weights.seconds());
  weights.kernels = n_weights;
  if (n_inputs == 0) return {weights};  // the first layer: no earlier layer needs a gradient
  if (n_weights == 0) return {inputs};
  return {inputs, weights};
}

/// The ops as if the step were one microbatch.
std::vector<Op> OpMaker::ops_of_step(std::size_t index) const {
  const Unit& unit = step_.units[index];
  Op op{.name = names_[names_.intern(short_name(unit.name))], .kind = OpKind::kElementwise};
  op.kernels = static_cast<double>(unit.device.size()) / unit.parts;
  op.measured = point(unit.time.seconds());
  op.dtype = Dtype::kFp32;
  if (const auto tensors = tensors_of(unit); !tensors.empty()) op.dtype = *tensors.front().dtype;
  const bool tf32 = std::any_of(unit.device.begin(), unit.device.end(),
                                [&](GpuIndex i) { return says(r_.name(r_.gpu(i)), {"tf32"}); });

  const Role role = role_of(unit.name);
  const bool backward = unit.phase == Phase::kBackward;
  const Op plain = op;
  bool shaped = false;
  switch (role) {
    case Role::kLinear:
    case Role::kMatrix:
      shaped = shape_matrix(unit, op);
      if (shaped && backward) matrix_backward(index, op);
      break;
    case Role::kConvolution:
      if (backward) {
        if (tf32 && op.dtype == Dtype::kFp32) op.dtype = Dtype::kTf32;
        return convolution_backward(unit, op);
      }
      shaped = shape_convolution(unit, index, op);
      break;
    case Role::kAttention: {
      const Unit& forward = unit.forward ? step_.units[*unit.forward] : unit;
      shaped = shape_attention(backward ? forward : unit, op);
      if (shaped && backward) op.batch *= 2;  // twice the multiplications of forward are counted
      break;
    }
    case Role::kNorm:
    case Role::kSoftmax:
    case Role::kGather: shaped = shape_rows(unit, op); break;
    case Role::kPool:
    case Role::kPlain: break;
  }
  if (!shaped) {
    op = plain;
    shape_bytes(unit, op);
    if (role == Role::kConvolution || role == Role::kPool)
      if (outputs_[index].is_tensor() && !unit.operands.empty())
        op.bytes = Bytes::b(unit.operands.front().bytes() + outputs_[index].bytes());
  }
  if (tf32 && op.dtype == Dtype::kFp32 &&
      (op.kind == OpKind::kGemm || op.kind == OpKind::kConvolution))
    op.dtype = Dtype::kTf32;
  return {op};
}

std::vector<Op> OpMaker::ops(std::size_t index) const {
  std::vector<Op> ops = ops_of_step(index);
  const double passes = static_cast<double>(step_.microbatches);
  for (Op& op : ops) {
    op.measured = point(op.measured->value / passes);
    op.kernels /= passes;
  }
  return ops;
}

}  // namespace rehearse::workload::lifting
