#include <algorithm>

#include <fmt/core.h>

#include "models/workload/lift_steps.h"
#include "sim/base/text.h"

namespace rehearse::workload::lifting {
namespace {

/// A parameter that a forward operator uses.
struct Parameter {
  Operand operand;
  std::size_t layer;
  bool tensor;
  Role role;
  bool expert;
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
                       role_of(step.units[u].name), maker.of_experts(step.units[u])});
    }
  }
  return found;
}

/// Gradients determine which operands are parameters: an operand without a gradient is shared with
/// another layer that has it, or frozen. Gradients without an operand belong to the layer that made
/// them.
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
  const bool flat = !left.empty() && std::all_of(left.begin(), left.end(), [](const Gradient* g) {
    return g->parameter.extents.size() == 1;
  });
  double all = 0, matched = 0;
  for (const Parameter& p : parameters) {
    all += p.operand.elements();
    if (p.has_gradient) matched += p.operand.elements();
  }
  if (flat && matched * 2 < all) {
    notes.emplace_back(
        "gradients are flat shards: parameters are counted from the operands of the forward pass");
    return;
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
    // Scales and shifts were only guesses.
    if (!matrix && p.role == Role::kPlain) return true;
    frozen += p.operand.elements();
    return false;
  });
  const auto million = [](double count) { return significant(count / 1e6) + " M"; };
  if (added > 0)
    notes.push_back(fmt::format("{} parameters are known only by their gradients", million(added)));
  if (dropped > 0)
    notes.push_back(
        fmt::format("{} parameters are counted once: two layers share them", million(dropped)));
  if (frozen > 0)
    notes.push_back(
        fmt::format("{} parameters have no gradient: they are not trained", million(frozen)));
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

/// A tensor that the forward pass made, as later operators see it.
struct Made {
  double elements;
  double bytes;
  std::size_t layer;  ///< that wrote it last
  Share share;        ///< of the unit that made it
  Role role;
  bool read = false;    ///< by an operator since it was written last
  bool needed = false;  ///< by backward
};

/// Tensors have no names in a recording. An operator's operand is assumed to be the latest tensor
/// with as many elements that no operator has read, else the latest.
class Tensors {
 public:
  std::optional<std::size_t> find(const Operand& operand) const {
    std::optional<std::size_t> any;
    for (std::size_t t = made_.size(); t-- > 0;) {
      if (made_[t].elements != operand.elements() || made_[t].bytes != operand.bytes()) continue;
      if (!made_[t].read) return t;
      if (!any) any = t;
    }
    return any;
  }
  std::size_t add(Made made) {
    made_.push_back(made);
    return made_.size() - 1;
  }
  Made& operator[](std::size_t t) { return made_[t]; }
  const std::vector<Made>& all() const { return made_; }

 private:
  std::vector<Made> made_;
};

/// Whether backward undoes the operator from its result, as that of relu and softmax does.
bool needs_result(const Unit& unit) {
  const std::string_view name = short_name(unit.name);
  const Role role = role_of(unit.name);
  return role == Role::kSoftmax || role == Role::kAttention || name.starts_with("relu") ||
         name.starts_with("sigmoid") || name.starts_with("tanh") || name.starts_with("exp");
}

/// Returns the tensor that a unit leaves, and marks its inputs as read. Backward needs the inputs
/// of all units except additions, copies and the like, and the results of some.
std::optional<std::size_t> leave(const Unit& unit, const Operand& out, std::size_t layer,
                                 Share share, const OpMaker& maker, Tensors& tensors) {
  std::vector<std::size_t> inputs, unread;
  for (const Operand& operand : unit.operands) {
    if (!operand.is_floating() || !maker.holds_samples(operand)) continue;
    const std::optional<std::size_t> t = tensors.find(operand);
    if (!t) continue;
    inputs.push_back(*t);
    if (!tensors[*t].read) unread.push_back(*t);
    tensors[*t].read = true;
    if (!keeps_nothing(unit.name) && !needs_result(unit)) tensors[*t].needed = true;
  }
  if (in_place(unit.name)) {
    if (inputs.empty()) return std::nullopt;
    // A block adds to the tensor that it computed before the branch around it: the older of two new
    // tensors.
    const std::size_t t = unread.empty() ? inputs.front() : unread.back();
    tensors[t].read = false;
    tensors[t].layer = layer;
    tensors[t].needed = tensors[t].needed || needs_result(unit);
    return t;
  }
  if (!out.is_floating() || !maker.holds_samples(out)) return std::nullopt;
  return tensors.add({.elements = out.elements(),
                      .bytes = out.bytes(),
                      .layer = layer,
                      .share = share,
                      .role = role_of(unit.name),
                      .needed = needs_result(unit)});
}

void keep_activations(const StepUnits& step, const Layers& of, const OpMaker& maker,
                      const Shares& shares, Workload& workload) {
  Tensors tensors;
  std::vector<std::optional<std::size_t>> last(workload.layers.size());
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kForward || !of.of_unit[u]) continue;
    if (const auto t =
            leave(unit, maker.output(u), *of.of_unit[u], shares.of_unit[u], maker, tensors))
      last[*of.of_unit[u]] = t;
  }
  struct Sum {
    double input = 0, divided_input = 0, whole = 0, divided = 0, core = 0;
  };
  std::vector<Sum> sums(workload.layers.size() + 1);
  for (std::size_t t = 0; t < tensors.all().size(); ++t) {
    const Made& made = tensors.all()[t];
    if (!made.needed) continue;
    const bool divided = made.share == Share::kColumn || made.share == Share::kBetween;
    if (last[made.layer] == t && made.layer + 1 < workload.layers.size())
      // What a layer passes on, the next takes.
      (divided ? sums[made.layer + 1].divided_input : sums[made.layer + 1].input) += made.bytes;
    else if (divided && made.role == Role::kSoftmax)
      sums[made.layer].core += made.bytes;
    else
      (divided ? sums[made.layer].divided : sums[made.layer].whole) += made.bytes;
  }
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    Layer& layer = workload.layers[i];
    if (last[i]) layer.output = Bytes::b(tensors[*last[i]].bytes);
    const bool loss = i + 1 == workload.layers.size();
    const auto keep = [&](double bytes, SavedActivation saved) {
      saved.bytes = Bytes::b(bytes);
      if (bytes > 0) layer.saved.push_back(saved);
    };
    const Bytes none = Bytes::b(0);
    keep(sums[i].input, {.name = "input", .bytes = none, .input = true});
    keep(sums[i].divided_input,
         {.name = "input, divided", .bytes = none, .tensor = true, .input = true});
    keep(sums[i].whole, {.name = "outputs", .bytes = none, .transient = loss});
    keep(sums[i].divided, {.name = "outputs, divided", .bytes = none, .tensor = true});
    keep(sums[i].core, {.name = "scores", .bytes = none, .tensor = true, .core = true});
    if (layer.recompute.empty()) continue;
    for (const SavedActivation& saved : layer.saved)
      if (!saved.input && !saved.transient) layer.recomputed += saved.bytes;
    std::erase_if(layer.saved,
                  [](const SavedActivation& saved) { return !saved.input && !saved.transient; });
  }
}

}  // namespace

void fill_memory(const StepUnits& step, const Layers& of, const OpMaker& maker,
                 const Shares& shares, Workload& workload, std::vector<std::string>& notes) {
  std::vector<Parameter> parameters = find_parameters(step, of, maker, shares);
  check_by_gradients(step, of, parameters, workload, notes);
  if (step.gradients.empty()) warn_of_tied(parameters, notes);
  for (const Parameter& p : parameters)
    workload.layers[p.layer].weights.push_back(
        {.count = p.operand.elements(), .tensor = p.tensor, .expert = p.expert});
  keep_activations(step, of, maker, shares, workload);
}

}  // namespace rehearse::workload::lifting
