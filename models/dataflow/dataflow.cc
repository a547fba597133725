#include "models/dataflow/dataflow.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::dataflow {
namespace {

std::string text_of(const Extents& extents) {
  return "[" + join(extents, ", ", [](const Extent& e) { return e.name; }) + "]";
}

tl::unexpected<Error> mismatch(const Dataflow& flow, const Operation& op, std::string expected) {
  const std::string operands = join(op.of, " and ", [&](const Operand& operand) {
    const Value& value = flow.value(operand);
    return fmt::format("{} {}", value.name, text_of(value.extents));
  });
  return fail(fmt::format("{} of {}", to_string(op.kind), operands), std::move(expected));
}

Result<Extents> elementwise_extents(const Dataflow& flow, const Operation& op) {
  Extents widest;
  for (const Operand& operand : op.of) {
    const Extents& extents = flow.value(operand).extents;
    if (extents.size() != 2 || (!widest.empty() && extents[0] != widest[0]))
      return mismatch(flow, op, "values with the same rows, and columns");
    if (widest.empty() || extents[1].size > widest[1].size) widest = extents;
  }
  for (const Operand& operand : op.of)
    if (const Extent& columns = flow.value(operand).extents[1];
        columns.size != 1 && columns != widest[1])
      return mismatch(flow, op, "equal columns, or one column");
  if (op.columns) widest[1] = *op.columns;
  return widest;
}

Result<Extents> concatenated_extents(const Dataflow& flow, const Operation& op) {
  Extents all = flow.value(op.of.front()).extents;
  for (std::size_t i = 0; i < op.of.size(); ++i) {
    const Extents& extents = flow.value(op.of[i]).extents;
    if (extents.size() != 2 || extents[0] != all[0])
      return mismatch(flow, op, "values with the same rows, and columns");
    if (i == 0) continue;
    all[1].size += extents[1].size;
    all[1].name += " + " + extents[1].name;
  }
  return all;
}

Result<Extents> product_extents(const Dataflow& flow, const Operation& op) {
  const Extents &x = flow.value(op.of[0]).extents, &w = flow.value(op.of[1]).extents;
  // Of weights: each matrix of the first by the matrix of the second.
  if (x.size() == 3 && op.kind == Kind::kMatmul) {
    if (w.size() < 2 || x[2].size != w[w.size() - 2].size || (w.size() == 3 && w[0] != x[0]))
      return mismatch(flow, op, "[R, F, G] and [G, H] or [R, G, H]");
    return Extents{x[0], x[1], w.back()};
  }
  if (x.size() != 2) return mismatch(flow, op, "a first operand with rows and columns");
  if (op.kind == Kind::kSegmented) {
    const Index& by = flow.indices[*op.by];
    if (w.size() != 3 || w[0] != by.of || x[0] != by.rows || x[1].size != w[1].size)
      return mismatch(flow, op,
                      fmt::format("[{0}, F] and [{1}, F, G], as {2} is from {0} to {1}",
                                  by.rows.name, by.of.name, by.name));
    return Extents{x[0], w[2]};
  }
  if (w.size() == 3 && w[0] == x[0] && w[1].size == x[1].size) return Extents{x[0], w[2]};
  if (w.size() != 2 || w[0].size != x[1].size)
    return mismatch(flow, op, "[E, F] and [F, G], or [E, F] and [E, F, G]");
  return Extents{x[0], w[1]};
}

}  // namespace

double Value::elements() const {
  double product = 1;
  for (const Extent& extent : extents) product *= extent.size;
  return product;
}

ValueId Dataflow::add_value(std::string label, Extents extents, Role role) {
  values.push_back({std::move(label), std::move(extents), role});
  return values.size() - 1;
}

std::optional<std::size_t> Dataflow::producer(ValueId value) const {
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (operations[i].result == value) return i;
  return std::nullopt;
}

std::size_t Dataflow::uses(ValueId value) const {
  auto count = static_cast<std::size_t>(std::ranges::count(results, value));
  for (const Operation& op : operations)
    count += static_cast<std::size_t>(std::ranges::count_if(
        op.of, [value](const Operand& operand) { return operand.value == value; }));
  return count;
}

Result<Extents> extents_of(const Dataflow& flow, const Operation& op) {
  const Extents& first = flow.value(op.of.front()).extents;
  switch (op.kind) {
    case Kind::kElementwise: return elementwise_extents(flow, op);
    case Kind::kConcatenate: return concatenated_extents(flow, op);
    case Kind::kMatmul:
    case Kind::kSegmented: return product_extents(flow, op);
    case Kind::kWeightGradient: return flow.result(op).extents;
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kReduce:
    case Kind::kSoftmax: break;
  }
  const Index& by = flow.indices[*op.by];
  const bool gathers = op.kind == Kind::kGather;
  if (first.size() < 2 || (!gathers && first.size() != 2) ||
      first[0] != (gathers ? by.of : by.rows))
    return mismatch(flow, op,
                    fmt::format("rows {}, as {} is from {} to {}", (gathers ? by.of : by.rows).name,
                                by.name, by.rows.name, by.of.name));
  Extents extents = first;
  if (op.kind != Kind::kSoftmax) extents[0] = gathers ? by.rows : by.of;
  return extents;
}

Flops flops_of(const Dataflow& flow, const Operation& op) {
  /// Maximum, difference, exponential, sum and quotient.
  constexpr double kSoftmaxFlops = 5;
  const double first = flow.value(op.of.front()).elements();
  double flops = op.fused_flops;
  switch (op.kind) {
    case Kind::kGather:
    case Kind::kConcatenate: break;
    case Kind::kScatter: flops += first; break;
    case Kind::kReduce: {
      const double rows = flow.indices[*op.by].rows.size;
      flops += rows * flow.result(op).row_elements();
      break;
    }
    case Kind::kSoftmax: flops += kSoftmaxFlops * first; break;
    case Kind::kMatmul:
    case Kind::kSegmented: flops += 2 * first * flow.result(op).extents.back().size; break;
    case Kind::kWeightGradient:
      flops += 2 * first * flow.value(op.of[1]).extents.back().size;
      break;
    case Kind::kElementwise: {
      double columns = flow.result(op).extents.back().size;
      for (const Operand& operand : op.of)
        columns = std::max(columns, flow.value(operand).extents.back().size);
      flops += op.flops * flow.result(op).extents.front().size * columns;
      break;
    }
  }
  return Flops::flop(flops);
}

void simplify(Dataflow& flow) {
  // Equal operations once: the first replaces the others.
  using Key = std::tuple<Kind, std::vector<std::pair<ValueId, std::size_t>>, std::size_t, double,
                         double, double, bool>;
  const auto number = [](const std::optional<IndexId>& id) { return id ? *id + 1 : 0; };
  std::map<Key, ValueId> first;
  std::vector<ValueId> stands_for(flow.values.size());
  for (ValueId v = 0; v < stands_for.size(); ++v) stands_for[v] = v;
  std::vector<Operation> kept;
  for (Operation& op : flow.operations) {
    std::vector<std::pair<ValueId, std::size_t>> of;
    for (Operand& operand : op.of) {
      operand.value = stands_for[operand.value];
      of.emplace_back(operand.value, number(operand.by));
    }
    const double columns = op.columns ? op.columns->size : 0;
    const double groups = op.groups ? op.groups->size : 0;
    // Elementwise operations of the same operands may compute different functions.
    const bool equal = op.kind != Kind::kElementwise;
    const auto [it, is_new] = first.emplace(
        Key{op.kind, std::move(of), number(op.by), op.flops, columns, groups, op.compiled},
        op.result);
    if (!is_new && equal)
      stands_for[op.result] = it->second;
    else
      kept.push_back(std::move(op));
  }
  for (ValueId& result : flow.results) result = stands_for[result];
  // From the last to the first, what nothing uses.
  std::vector<char> used(flow.values.size(), 0);
  for (const ValueId result : flow.results) used[result] = 1;
  std::vector<Operation> needed;
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) {
    if (!used[op->result]) continue;
    for (const Operand& operand : op->of) used[operand.value] = 1;
    needed.push_back(std::move(*op));
  }
  std::ranges::reverse(needed);
  flow.operations = std::move(needed);
}

}  // namespace rehearse::dataflow
