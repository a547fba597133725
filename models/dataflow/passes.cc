#include "models/dataflow/passes.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::dataflow {
namespace {

/// The gather that computes an operand, which the operand reads as a whole.
const Operation* gather_of(const Dataflow& flow, const Operand& operand) {
  const auto at = flow.producer(operand.value);
  if (operand.by || !at || flow.operations[*at].kind != Kind::kGather) return nullptr;
  return &flow.operations[*at];
}

/// Operations instead of the one at `at`.
void replace(Dataflow& flow, std::size_t at, std::vector<Operation> by) {
  auto& operations = flow.operations;
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(at));
  operations.insert(operations.begin() + static_cast<std::ptrdiff_t>(at),
                    std::make_move_iterator(by.begin()), std::make_move_iterator(by.end()));
}

/// Rewrites each operation until the rewrite does not apply, in their order: a rewrite affects only
/// itself and what follows.
template <class Rewrite>
void everywhere(Dataflow& flow, const Rewrite& rewrite) {
  for (std::size_t at = 0; at < flow.operations.size();)
    if (!rewrite(flow, at)) ++at;
}

/// The operation before the gather of its operands, if all are gathered alike from fewer rows.
bool before_gather(Dataflow& flow, std::size_t at) {
  const Operation op = flow.operations[at];
  const bool product = op.kind == Kind::kMatmul && flow.value(op.of[1]).extents.size() == 2;
  if (op.groups || (!product && op.kind != Kind::kElementwise)) return false;
  std::vector<Operand> sources = op.of;
  std::optional<IndexId> by;
  for (std::size_t i = 0; i < (product ? 1 : op.of.size()); ++i) {
    const Operation* gather = gather_of(flow, op.of[i]);
    if (!gather || (by && by != gather->by)) return false;
    by = gather->by;
    sources[i] = gather->of.front();
  }
  const Index& index = flow.indices[*by];
  if (index.of.size >= index.rows.size) return false;
  Extents extents = flow.result(op).extents;
  extents[0] = index.of;
  Operation first = op;
  first.of = std::move(sources);
  first.result = flow.add_value(flow.result(op).name + " of " + index.of.name, std::move(extents));
  Operation gather{.kind = Kind::kGather,
                   .of = {{first.result}},
                   .by = by,
                   .result = op.result,
                   .compiled = op.compiled};
  replace(flow, at, {std::move(first), std::move(gather)});
  return true;
}

/// A product with concatenated values as a sum of products with the parts of the weight.
bool by_parts(Dataflow& flow, std::size_t at) {
  const Operation op = flow.operations[at];
  if (op.groups || (op.kind != Kind::kMatmul && op.kind != Kind::kSegmented)) return false;
  const auto producer = flow.producer(op.of[0].value);
  const Value weight = flow.value(op.of[1]);
  if (!producer || !weight.is_weight()) return false;
  const Operation joined = flow.operations[*producer];
  if (joined.kind != Kind::kConcatenate) return false;
  std::vector<Operation> products;
  Operation sum{.kind = Kind::kElementwise,
                .of = {},
                .result = op.result,
                .flops = static_cast<double>(joined.of.size()) - 1,
                .compiled = op.compiled};
  const Extents whole = flow.result(op).extents;
  for (const Operand& part : joined.of) {
    const std::string name = flow.value(part).name;
    Extents rows = weight.extents;
    rows[rows.size() - 2] = flow.value(part).extents[1];
    Operation product = op;
    product.of = {part, {flow.add_value(weight.name + " of " + name, rows, Role::kPart)}};
    product.result = flow.add_value(flow.result(op).name + " of " + name, whole);
    sum.of.push_back({product.result});
    products.push_back(std::move(product));
  }
  products.push_back(std::move(sum));
  replace(flow, at, std::move(products));
  return true;
}

/// Two products in a row as one, if that takes fewer FLOPs.
bool by_combined_weights(Dataflow& flow, std::size_t at) {
  const Operation second = flow.operations[at];
  const auto product = [](const Operation& op) {
    return !op.groups && (op.kind == Kind::kMatmul || op.kind == Kind::kSegmented);
  };
  const auto producer = product(second) ? flow.producer(second.of[0].value) : std::nullopt;
  if (!producer || flow.uses(second.of[0].value) != 1) return false;
  const Operation first = flow.operations[*producer];
  const Value &w1 = flow.value(first.of.back()), &w2 = flow.value(second.of[1]);
  if (!product(first) || !w1.is_weight() || !w2.is_weight()) return false;
  // The second weight is one matrix, or one for each type of the first.
  if (second.kind == Kind::kSegmented ? second.by != first.by : w2.extents.size() != 2)
    return false;
  Extents extents = w1.extents;
  extents.back() = w2.extents.back();
  const double combining = 2 * w1.elements() * extents.back().size;
  const double combined = 2 * flow.value(first.of[0]).elements() * extents.back().size;
  if (combining + combined >= (flops_of(flow, first) + flops_of(flow, second)).flop()) return false;
  const Operation weights{.kind = Kind::kMatmul,
                          .of = {first.of[1], second.of[1]},
                          .result = flow.add_value(w1.name + " " + w2.name, std::move(extents)),
                          .compiled = second.compiled};
  Operation both = first;
  both.of[1] = {weights.result};
  both.result = second.result;
  replace(flow, at, {weights, std::move(both)});
  return true;
}

/// A segmented product of gathered values before the gather, if the types follow from the source.
bool before_typed_gather(Dataflow& flow, std::size_t at) {
  const Operation op = flow.operations[at];
  if (op.groups || op.kind != Kind::kSegmented) return false;
  const Operation* gather = gather_of(flow, op.of[0]);
  if (!gather) return false;
  const Index& types = flow.indices[*op.by];
  const auto via =
      std::ranges::find_if(types.via, [&](const auto& way) { return way.first == *gather->by; });
  if (via == types.via.end()) return false;
  const Extent rows = flow.indices[*gather->by].of;
  if (rows.size >= types.rows.size) return false;
  Operation product = op, give = *gather;
  Extents extents = flow.result(op).extents;
  extents[0] = rows;
  product.by = via->second;
  product.of[0] = gather->of.front();
  product.result = flow.add_value(flow.result(op).name + " of " + rows.name, extents);
  give.of = {{product.result}};
  give.result = op.result;
  replace(flow, at, {std::move(product), std::move(give)});
  return true;
}

/// A product by gathered weights as a segmented product.
bool by_segments(Dataflow& flow, std::size_t at) {
  Operation& op = flow.operations[at];
  if (op.groups || op.kind != Kind::kMatmul) return false;
  const Operation* typed = gather_of(flow, op.of[1]);
  if (!typed || flow.value(op.of[1]).extents.size() != 3) return false;
  op.kind = Kind::kSegmented;
  op.by = typed->by;
  op.of[1] = typed->of.front();
  return true;
}

/// The rows of a gather as one gather from distinct pairs of source and type.
bool once_per_pair(Dataflow& flow, std::size_t at) {
  const Operation op = flow.operations[at];
  if (op.groups || op.kind != Kind::kSegmented) return false;
  const Operation* found = gather_of(flow, op.of[0]);
  if (!found) return false;
  const Index types = flow.indices[*op.by], source = flow.indices[*found->by];
  const auto known =
      std::ranges::find_if(types.pairs, [&](const auto& pair) { return pair.first == *found->by; });
  if (known == types.pairs.end() || known->second.size >= types.rows.size) return false;
  const Extent pairs = known->second;
  const auto add_index = [&](std::string_view from, const Extent& rows, const Extent& of) {
    flow.indices.push_back({fmt::format("{} of {}", from, rows.name), rows, of});
    return flow.indices.size() - 1;
  };
  // The same pairs serve all products of this source and these types.
  const IndexId source_of_pair = add_index(source.name, pairs, source.of);
  const IndexId type_of_pair = add_index(types.name, pairs, types.of);
  const IndexId pair = add_index(pairs.name, types.rows, pairs);
  const IndexId by_source = *found->by;
  Index& replaced = flow.indices[*op.by];
  replaced.pairs.erase(replaced.pairs.begin() + (known - types.pairs.begin()));
  replaced.via.emplace_back(pair, type_of_pair);
  for (std::size_t i = 0; i < flow.operations.size(); ++i) {
    const Operation gather = flow.operations[i];
    if (gather.kind != Kind::kGather || gather.by != by_source || gather.groups) continue;
    const bool typed = std::ranges::any_of(flow.operations, [&](const Operation& other) {
      return other.kind == Kind::kSegmented && other.by == op.by &&
             other.of[0].value == gather.result;
    });
    if (!typed) continue;
    Extents extents = flow.result(gather).extents;
    extents[0] = pairs;
    Operation take = gather, give = gather;
    take.by = source_of_pair;
    take.result = flow.add_value(flow.result(gather).name + " of " + pairs.name, extents);
    give.by = pair;
    give.of = {{take.result}};
    replace(flow, i, {std::move(take), std::move(give)});
    ++i;
  }
  return true;
}

bool reads_gathers(const Operation& op) {
  return !op.groups && (op.kind == Kind::kElementwise || op.kind == Kind::kReduce);
}

bool gather_within(Dataflow& flow, std::size_t at) {
  const Operation gather = flow.operations[at];
  if (gather.kind != Kind::kGather || gather.groups) return false;
  const auto reads = [&](const Operand& operand) { return operand.value == gather.result; };
  std::size_t within = 0;
  for (const Operation& op : flow.operations)
    if (reads_gathers(op)) within += static_cast<std::size_t>(std::ranges::count_if(op.of, reads));
  // Where another operation needs the copy, reading it is as cheap.
  if (within == 0 || within != flow.uses(gather.result)) return false;
  for (Operation& op : flow.operations)
    for (Operand& operand : op.of)
      if (reads(operand)) operand = {gather.of.front().value, gather.by};
  replace(flow, at, {});
  return true;
}

bool elementwise_within(Dataflow& flow, std::size_t at) {
  const Operation reduce = flow.operations[at];
  if (reduce.kind != Kind::kReduce || reduce.groups || reduce.of.size() != 1) return false;
  const auto producer = flow.producer(reduce.of[0].value);
  if (!producer || flow.uses(reduce.of[0].value) != 1) return false;
  const Operation inner = flow.operations[*producer];
  if (inner.kind != Kind::kElementwise || inner.groups ||
      std::ranges::none_of(inner.of, [](const Operand& operand) { return operand.by.has_value(); }))
    return false;
  flow.operations[at].fused_flops += flops_of(flow, inner).flop();
  flow.operations[at].of = inner.of;
  replace(flow, *producer, {});
  return true;
}

}  // namespace

Status compile(Dataflow& flow) {
  for (Operation& op : flow.operations) {
    op.groups = std::nullopt;
    op.compiled = true;
  }
  simplify(flow);
  return {};
}

Status reorder(Dataflow& flow) {
  everywhere(flow, [](Dataflow& all, std::size_t at) {
    return by_parts(all, at) || before_gather(all, at) || before_typed_gather(all, at);
  });
  simplify(flow);  // values that nothing uses any more do not count as uses
  everywhere(flow, by_combined_weights);
  simplify(flow);
  return {};
}

Status dedupe(Dataflow& flow) {
  everywhere(flow, by_segments);
  everywhere(flow, [](Dataflow& all, std::size_t at) {
    return before_typed_gather(all, at) || once_per_pair(all, at);
  });
  simplify(flow);
  return {};
}

Status fuse(Dataflow& flow) {
  everywhere(flow, gather_within);
  everywhere(flow, elementwise_within);
  return {};
}

}  // namespace rehearse::dataflow
