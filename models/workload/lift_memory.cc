#include "models/workload/lift_memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::workload::lifting {
namespace {

/// A parameter that a forward operator uses.
struct Parameter {
  Operand operand;
  std::size_t layer;
  bool tensor;
  Role role;
  bool has_gradient = false;
};

/// Weights may be recorded transposed.
bool same_shape(const Operand& a, const Operand& b) {
  if (a.extents == b.extents) return true;
  return a.extents.size() == 2 && b.extents.size() == 2 && a.extents[0] == b.extents[1] &&
         a.extents[1] == b.extents[0];
}

std::vector<Parameter> find_parameters(const StepUnits& step, const Layers& of,
                                       const OpMaker& maker, const Shares& shares) {
  std::vector<Parameter> found;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    if (step.units[u].phase != Phase::kForward || !of.of_unit[u]) continue;
    for (const Operand& operand : maker.weights(u)) {
      const Share share = shares.of_unit[u];
      const bool bias = operand.extents.size() == 1;
      found.push_back({operand, *of.of_unit[u],
                       share == Share::kColumn || (share == Share::kRow && !bias),
                       role_of(step.units[u].name)});
    }
  }
  return found;
}

/// Gradients say which operands are parameters: those without one are shared with another layer
/// that has it, or frozen. Gradients without an operand belong to the layer that made them.
void check_by_gradients(const StepUnits& step, const Layers& of, std::vector<Parameter>& parameters,
                        Workload& workload, std::vector<std::string>& notes) {
  if (step.gradients.empty()) return;
  std::vector<const Gradient*> left;
  for (const Gradient& gradient : step.gradients) {
    std::optional<std::size_t> layer;
    if (gradient.unit) layer = of.of_unit[*gradient.unit];
    Parameter* best = nullptr;
    for (Parameter& p : parameters)
      if (!p.has_gradient && same_shape(p.operand, gradient.parameter) &&
          (!best || (layer && p.layer == *layer && best->layer != *layer)))
        best = &p;
    if (best)
      best->has_gradient = true;
    else
      left.push_back(&gradient);
  }
  double added = 0, dropped = 0, frozen = 0;
  for (const Gradient* gradient : left) {
    std::size_t layer = 0;
    if (gradient->unit && of.of_unit[*gradient->unit]) layer = *of.of_unit[*gradient->unit];
    workload.layers[layer].weights.push_back({.count = gradient->parameter.elements()});
    added += gradient->parameter.elements();
  }
  std::erase_if(parameters, [&](const Parameter& p) {
    if (p.has_gradient) return false;
    const bool shared = std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& q) {
      return q.has_gradient && q.layer != p.layer && same_shape(p.operand, q.operand);
    });
    const bool matrix = p.operand.extents.size() > 1;
    if (shared && matrix) {
      dropped += p.operand.elements();
      workload.tied_embedding = workload.tied_embedding || p.role == Role::kGather ||
                                p.layer + 1 == workload.layers.size();
      return true;
    }
    // Scales and shifts were guesses.
    if (!matrix && p.role == Role::kPlain) return true;
    frozen += p.operand.elements();
    return false;
  });
  const auto million = [](double count) { return significant(count / 1e6) + " M"; };
  if (added > 0)
    notes.push_back(fmt::format("{} parameters are known by their gradients alone", million(added)));
  if (dropped > 0)
    notes.push_back(fmt::format("{} parameters are counted once: two layers share them",
                                million(dropped)));
  if (frozen > 0)
    notes.push_back(fmt::format("{} parameters have no gradient: they are not trained",
                                million(frozen)));
}

/// Without gradients: a table and a last linear of one shape may be one matrix.
void warn_of_tied(const std::vector<Parameter>& parameters, std::vector<std::string>& notes) {
  for (const Parameter& table : parameters) {
    if (table.role != Role::kGather) continue;
    for (const Parameter& other : parameters)
      if (other.role != Role::kGather && same_shape(table.operand, other.operand)) {
        notes.push_back(fmt::format(
            "the table of embeddings and a later matrix have one shape ({} × {}): if they are one, "
            "{} M parameters are counted twice",
            table.operand.extents[0], table.operand.extents[1],
            significant(table.operand.elements() / 1e6)));
        return;
      }
  }
}

/// Tensors of the forward pass that backward needs: the output of a unit stays where the unit
/// itself needs it (activations that are undone from their result) or the next one its input.
/// Operators that write in place keep the tensor before them.
void keep_activations(const StepUnits& step, const Layers& of, const OpMaker& maker,
                      const Shares& shares, Workload& workload) {
  struct Tensor {
    std::size_t unit;
    double bytes;
    bool needed;
  };
  std::vector<Tensor> tensors;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    const Operand& out = maker.output(u);
    if (unit.phase != Phase::kForward || !of.of_unit[u] || !out.is_floating() ||
        !maker.holds_samples(out))
      continue;
    const bool undone = !keeps_nothing(unit.name) && role_of(unit.name) != Role::kLinear &&
                        role_of(unit.name) != Role::kMatrix &&
                        role_of(unit.name) != Role::kConvolution;
    if (!tensors.empty() && !keeps_nothing(unit.name)) tensors.back().needed = true;
    if (in_place(unit.name) && !tensors.empty() && tensors.back().bytes == out.bytes())
      tensors.back().needed = tensors.back().needed || undone;
    else
      tensors.push_back({u, out.bytes(), role_of(unit.name) == Role::kSoftmax ||
                                             role_of(unit.name) == Role::kAttention});
  }
  struct Sum {
    double whole = 0, divided = 0, core = 0;
  };
  std::vector<Sum> sums(workload.layers.size());
  for (const Tensor& tensor : tensors) {
    const std::size_t layer = *of.of_unit[tensor.unit];
    workload.layers[layer].output = Bytes::b(tensor.bytes);  // the last one stays
    if (!tensor.needed) continue;
    const Share share = shares.of_unit[tensor.unit];
    const bool divided = share == Share::kColumn || share == Share::kBetween;
    const bool scores = divided && role_of(step.units[tensor.unit].name) == Role::kSoftmax;
    (scores ? sums[layer].core : divided ? sums[layer].divided : sums[layer].whole) += tensor.bytes;
  }
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    Layer& layer = workload.layers[i];
    // What a layer passes on is the input of the next, which full recomputation keeps.
    const bool last = i + 1 == workload.layers.size();
    const double input = i == 0 ? 0 : workload.layers[i - 1].output.b();
    const double inside = std::max(0.0, sums[i].whole - (last ? 0 : layer.output.b()));
    if (input > 0) layer.kept.push_back({.name = "input", .bytes = Bytes::b(input), .input = true});
    if (inside > 0)
      layer.kept.push_back({.name = last ? "outputs and loss" : "outputs",
                            .bytes = Bytes::b(inside),
                            .transient = last});
    if (sums[i].divided > 0)
      layer.kept.push_back(
          {.name = "outputs, divided", .bytes = Bytes::b(sums[i].divided), .tensor = true});
    if (sums[i].core > 0)
      layer.kept.push_back({.name = "scores",
                            .bytes = Bytes::b(sums[i].core),
                            .tensor = true,
                            .core = true});
  }
}

}  // namespace

void fill_memory(const StepUnits& step, const Layers& of, const OpMaker& maker,
                 const Shares& shares, Workload& workload, std::vector<std::string>& notes) {
  std::vector<Parameter> parameters = find_parameters(step, of, maker, shares);
  check_by_gradients(step, of, parameters, workload, notes);
  if (step.gradients.empty()) warn_of_tied(parameters, notes);
  for (const Parameter& p : parameters)
    workload.layers[p.layer].weights.push_back({.count = p.operand.elements(), .tensor = p.tensor});
  keep_activations(step, of, maker, shares, workload);
}

}  // namespace rehearse::workload::lifting
