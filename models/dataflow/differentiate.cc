#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "models/dataflow/passes.h"

namespace rehearse::dataflow {
namespace {

/// Collects the gradients of values, from the last operation to the first.
class Gradients {
 public:
  explicit Gradients(Dataflow& flow) : flow_(flow), needs_(flow.values.size()) {
    for (ValueId v = 0; v < needs_.size(); ++v) needs_[v] = flow.values[v].is_weight() ? 1 : 0;
    for (const Operation& op : flow.operations)
      needs_[op.result] =
          std::ranges::any_of(op.of, [this](const Operand& o) { return needs_[o.value] != 0; }) ? 1
                                                                                                : 0;
  }

  void run() {
    const std::vector<Operation> forward = flow_.operations;
    for (const ValueId result : flow_.results)
      if (needs_[result])
        terms_[result].push_back(flow_.add_value("gradient of " + flow_.values[result].name,
                                                 flow_.values[result].extents, Role::kInput));
    for (auto op = forward.rbegin(); op != forward.rend(); ++op)
      if (const auto gradient = sum_of(op->result)) differentiate(*op, *gradient);
    for (ValueId v = 0; v < needs_.size(); ++v)
      if (flow_.values[v].is_weight())
        if (const auto gradient = sum_of(v)) flow_.results.push_back(*gradient);
  }

 private:
  /// The sum of the gradients of a value; nothing if it has none.
  std::optional<ValueId> sum_of(ValueId value) {
    const std::vector<ValueId>& terms = terms_[value];
    if (terms.empty()) return std::nullopt;
    if (terms.size() == 1) return terms.front();
    Operation sum{.kind = Kind::kElementwise,
                  .of = {},
                  .result = flow_.add_value("gradient of " + flow_.values[value].name,
                                            flow_.values[value].extents),
                  .flops = static_cast<double>(terms.size()) - 1,
                  .compiled = true};
    for (const ValueId term : terms) sum.of.push_back({term});
    flow_.operations.push_back(sum);
    return sum.result;
  }

  /// Adds the operation that computes the gradient of an operand, if it needs one.
  void add(const Operand& operand, Operation op, Kind kind, const std::vector<ValueId>& of) {
    if (!needs_[operand.value]) return;
    op.kind = kind;
    op.of.clear();
    for (const ValueId value : of) op.of.push_back({value});
    op.result =
        flow_.add_value("gradient of " + flow_.value(operand).name, flow_.value(operand).extents);
    terms_[operand.value].push_back(op.result);
    flow_.operations.push_back(std::move(op));
  }

  void differentiate(const Operation& op, ValueId gradient) {
    const ValueId first = op.of.front().value;
    switch (op.kind) {
      case Kind::kGather: return add(op.of[0], op, Kind::kScatter, {gradient});
      case Kind::kScatter:
      case Kind::kReduce: return add(op.of[0], op, Kind::kGather, {gradient});
      case Kind::kSoftmax: return add(op.of[0], op, Kind::kSoftmax, {op.result, gradient});
      case Kind::kMatmul:
      case Kind::kSegmented:
        add(op.of[0], op, op.kind, {gradient, op.of[1].value});
        return add(op.of[1], op, Kind::kWeightGradient, {first, gradient});
      case Kind::kElementwise:
      case Kind::kConcatenate:
        for (const Operand& operand : op.of) {
          Operation back = op;
          back.columns = flow_.value(operand).extents[1];
          std::vector<ValueId> of = {gradient};
          if (op.kind == Kind::kConcatenate)
            back.flops = 0;  // a copy of its columns
          else
            for (const Operand& other : op.of) of.push_back(other.value);
          add(operand, std::move(back), Kind::kElementwise, std::move(of));
        }
        return;
      case Kind::kWeightGradient: return;
    }
  }

  Dataflow& flow_;
  std::vector<char> needs_;
  std::map<ValueId, std::vector<ValueId>> terms_;
};

}  // namespace

Status differentiate(Dataflow& flow) {
  for (const Operation& op : flow.operations) {
    if (op.kind == Kind::kWeightGradient) return fail("has run before", "differentiate once");
    for (const Operand& operand : op.of)
      if (operand.by)
        return fail("merged operations have no derivative", "differentiate before fuse");
  }
  Gradients(flow).run();
  return {};
}

}  // namespace rehearse::dataflow
