#include <algorithm>
#include <optional>
#include <span>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Extent, workload::Issue, workload::Layer, workload::Op;
using Ops = std::span<const Op>;

bool is_waited_for(const Op& op) {
  return op.kind == workload::OpKind::kCollective &&
         (op.issue == Issue::kInline || op.issue == Issue::kOverlapNext);
}

/// A communication that others wait for, or the ops between two of them.
std::vector<Ops> sections_of(Ops ops) {
  std::vector<Ops> sections;
  std::size_t first = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool ends = i + 1 == ops.size() || is_waited_for(ops[i]) || is_waited_for(ops[i + 1]);
    if (!ends) continue;
    sections.push_back(ops.subspan(first, i + 1 - first));
    first = i + 1;
  }
  return sections;
}

/// The work of an op in one of `parts`. Work on weights is not divided: it precedes all parts, or
/// if it is deferred, follows them.
std::optional<Op> part_of(Op op, std::size_t part, std::uint32_t parts) {
  const Extent extent = is_waited_for(op) ? Extent::kBytes : op.samples;
  if (extent != Extent::kNone)
    workload::divide(op, extent, parts);
  else if (part != (op.issue == Issue::kDeferred ? parts - 1 : 0))
    return std::nullopt;
  return op;
}

std::vector<Op> parts_of(Ops section, std::size_t part, std::uint32_t parts) {
  std::vector<Op> result;
  for (const Op& op : section)
    if (const auto own = part_of(op, part, parts)) result.push_back(*own);
  return result;
}

void append(std::vector<Op>& ops, const std::vector<Op>& more) {
  ops.insert(ops.end(), more.begin(), more.end());
}

/// In turn t, section s works on part t − s: what a section needs was made in the turn before.
/// Communications of a turn run while its other ops do, those of the last turn while the first ops
/// of what `follows` do. Ops that would run between the two run before them.
std::vector<Op> in_turns(Ops ops, std::uint32_t parts, bool follows) {
  std::vector<Ops> sections = sections_of(ops);
  std::vector<Op> result, ahead;
  if (follows && sections.size() > 1 && !is_waited_for(sections.back().front())) {
    for (std::uint32_t part = 0; part < parts; ++part)
      append(ahead, parts_of(sections.back(), part, parts));
    sections.pop_back();
  }
  const std::size_t turns = sections.empty() ? 0 : sections.size() + parts - 1;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    std::vector<Op> sent, computed;
    for (std::size_t s = std::min(turn + 1, sections.size()); s-- > 0 && turn - s < parts;)
      append(is_waited_for(sections[s].front()) ? sent : computed,
             parts_of(sections[s], turn - s, parts));
    const auto number = static_cast<std::uint32_t>(
        std::ranges::count_if(computed, [](const Op& op) { return !op.communicates(); }));
    const bool last = turn + 1 == turns;
    for (Op& op : sent)
      op.issue = number > 0 || (last && follows) ? Issue::kOverlapNext : Issue::kInline;
    if (Op* before = !sent.empty() ? &sent.back() : computed.empty() ? nullptr : &computed.front())
      before->alongside = std::max(1U, number);
    if (last) append(result, ahead);
    append(result, sent);
    append(result, computed);
  }
  return result;
}

bool is_exchange(const Op& op) {
  return is_waited_for(op) && op.collective == CollectiveKind::kAllToAll &&
         op.axis == workload::Axis::kExpert;
}

std::vector<Op> with_exchanges(Ops ops, std::uint32_t parts) {
  std::vector<Op> result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::size_t back = i + 1;
    while (back < ops.size() && !is_exchange(ops[back])) ++back;
    const Ops between = ops.subspan(i + 1, std::min(back, ops.size()) - i - 1);
    const bool goes_and_returns =
        is_exchange(ops[i]) && back < ops.size() &&
        std::ranges::any_of(between, [](const Op& op) { return op.expert && is_matrix(op); });
    if (!goes_and_returns) {
      result.push_back(ops[i]);
      continue;
    }
    append(result, in_turns(ops.subspan(i, back - i + 1), parts, false));
    i = back;
  }
  return result;
}

double kernels_of(const std::vector<Op>& ops) {
  double kernels = 0;
  for (const Op& op : ops)
    if (!op.communicates()) kernels += op.kernels;
  return kernels;
}

template <class Rewrite>
void rewrite(workload::Workload& workload, Rewrite rewritten) {
  for (Layer& layer : workload.layers) {
    const double before = kernels_of(layer.forward);
    for (std::vector<Op>* phase : {&layer.forward, &layer.backward, &layer.recompute})
      *phase = rewritten(*phase);
    if (before > 0) layer.host_work *= kernels_of(layer.forward) / before;
  }
}

}  // namespace

Result<workload::Workload> exchanges_in_parts(workload::Workload workload,
                                              const RankSetting& setting) {
  rewrite(workload, [&](const std::vector<Op>& phase) {
    return with_exchanges(phase, setting.plan->exchange_parts);
  });
  return workload;
}

Result<workload::Workload> microbatch_in_parts(workload::Workload workload,
                                               const RankSetting& setting) {
  rewrite(workload, [&](const std::vector<Op>& phase) {
    return in_turns(phase, setting.plan->microbatch_parts, true);
  });
  return workload;
}

}  // namespace rehearse::strategies
