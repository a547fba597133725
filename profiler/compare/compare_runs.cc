#include "profiler/compare/compare_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::compare {
namespace {

std::string list(const std::vector<std::string>& names) {
  return names.empty() ? "no device" : join(names, ", ");
}

Status check_alike(const Run& baseline, const Run& candidate) {
  if (baseline.devices != candidate.devices)
    return fail_in(candidate.source,
                   fmt::format("ran on {}, {} on {}", list(candidate.devices), baseline.source,
                               list(baseline.devices)),
                   "two recordings on the same devices");
  if (baseline.ranks != candidate.ranks)
    return fail_in(candidate.source,
                   fmt::format("has {}, {} has {}", counted(candidate.ranks, "rank"),
                               baseline.source, baseline.ranks),
                   "the same number of ranks in both", "--ranks 0 compares only the first");
  return {};
}

std::vector<Quantity> compare_quantities(const Run& b, const Run& c, const EffectOptions& options) {
  const double step = level_of(b.step_time);
  std::vector<Quantity> quantities;
  const auto add = [&](std::string_view name, std::string_view unit,
                       const std::vector<double>& of_b, const std::vector<double>& of_c) {
    if (of_b.empty() || of_c.empty()) return;
    quantities.push_back({.name = name,
                          .unit = unit,
                          .effect = measure_effect(of_b, of_c, unit == "s" ? step : 1, options)});
  };
  add("step_time", "s", b.step_time, c.step_time);
  add("compute", "s", b.compute, c.compute);
  add("exposed_communication", "s", b.exposed_communication, c.exposed_communication);
  add("copies", "s", b.copies, c.copies);
  add("launch_gaps", "s", b.launch_gaps, c.launch_gaps);
  add("energy", "J", b.energy, c.energy);
  // A part that no step has in either run is no part.
  std::erase_if(quantities, [](const Quantity& q) {
    return q.effect.baseline == 0 && q.effect.candidate == 0;
  });
  if (b.memory && c.memory && *b.memory > Bytes::b(0)) {
    Effect effect{.baseline = b.memory->b(),
                  .candidate = c.memory->b(),
                  .change = *c.memory / *b.memory - 1,
                  .scale = b.memory->b()};
    quantities.push_back(
        {.name = "memory", .unit = "B", .effect = effect, .measured_by_step = false});
  }
  std::vector<double> p_values;
  p_values.reserve(quantities.size());
  for (const Quantity& q : quantities) p_values.push_back(q.effect.p_value());
  const std::vector<bool> real = significant(p_values, 2 * kWrong);
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    Quantity& q = quantities[i];
    const double of_step = std::abs(q.effect.candidate - q.effect.baseline) / step;
    q.significant = (real[i] || in_each_step(q.effect, kLeastChange)) &&
                    std::abs(q.effect.change) >= kLeastChange &&
                    (q.unit != "s" || of_step >= kLeastShare);
  }
  return quantities;
}

/// Slots of both runs under one name.
struct Group {
  std::string name;
  OpKind kind;
  std::set<std::string> renamed = {};
  double calls_before = 0, calls_after = 0;
  std::vector<double> before, after;
};

/// A pair is listed under its name in the baseline; an op without a counterpart, under its own.
std::vector<Group> group_ops(const Run& b, const Run& c, const Matches& matches) {
  std::map<std::pair<OpKind, std::string>, Group> groups;
  const auto group = [&](const OpSlot& slot) -> Group& {
    return groups
        .try_emplace({slot.kind, slot.name}, Group{.name = slot.name,
                                                   .kind = slot.kind,
                                                   .before = std::vector<double>(b.steps()),
                                                   .after = std::vector<double>(c.steps())})
        .first->second;
  };
  const auto add = [](std::vector<double>& sums, const std::vector<double>& times) {
    for (std::size_t s = 0; s < times.size(); ++s) sums[s] += times[s];
  };
  std::vector<const OpSlot*> counterpart(c.slots.size(), nullptr);
  for (const SlotPair& pair : matches.pairs) counterpart[pair.candidate] = &b.slots[pair.baseline];
  for (const OpSlot& slot : b.slots) {
    Group& g = group(slot);
    g.calls_before += slot.calls;
    add(g.before, slot.times);
  }
  for (std::size_t i = 0; i < c.slots.size(); ++i) {
    const OpSlot& slot = c.slots[i];
    Group& g = group(counterpart[i] ? *counterpart[i] : slot);
    g.calls_after += slot.calls;
    if (slot.name != g.name) g.renamed.insert(slot.name);
    add(g.after, slot.times);
  }
  std::vector<Group> list;
  list.reserve(groups.size());
  for (auto& [key, g] : groups) list.push_back(std::move(g));
  return list;
}

/// An effect without its error.
Effect levels(double before, double after, double scale_if_zero) {
  const double scale = before > 0 ? before : scale_if_zero;
  return {
      .baseline = before, .candidate = after, .change = (after - before) / scale, .scale = scale};
}

/// Whether the op changes in each step, and explains a part of `step`, the change of the step.
bool explains(const Effect& step, const Effect& op) {
  return op.apart * step.change > 0 && op.apart_by_chance <= kWrong &&
         std::abs(op.apart * op.scale) >= kExplains * std::abs(step.change * step.scale);
}

std::vector<OpChange> compare_ops(const Run& b, const Run& c, const Matches& matches,
                                  const Quantity& of_step, const EffectOptions& options) {
  const double step = level_of(b.step_time);
  std::vector<OpChange> ops;
  std::vector<double> p_values;
  std::vector<std::size_t> tested;
  for (Group& g : group_ops(b, c, matches)) {
    // A group that is too small to matter is not tested, which saves its resampling.
    const double before = level_of(g.before), after = level_of(g.after);
    if (before == 0 && after == 0) continue;  // in few steps only
    const bool matters = std::max(before, after) >= kLeastShare * step;
    OpChange op{.name = std::move(g.name),
                .kind = g.kind,
                .renamed = {g.renamed.begin(), g.renamed.end()},
                .calls_before = g.calls_before,
                .calls_after = g.calls_after,
                .effect = matters ? measure_effect(g.before, g.after, step, options)
                                  : levels(before, after, step)};
    if (matters) {
      p_values.push_back(op.effect.p_value());
      tested.push_back(ops.size());
    }
    ops.push_back(std::move(op));
  }
  const std::vector<bool> real = significant(p_values, 2 * kWrong);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    OpChange& op = ops[tested[i]];
    const Effect& e = op.effect;
    op.significant = (real[i] || (of_step.significant && explains(of_step.effect, e))) &&
                     std::abs(e.change) >= kLeastChange &&
                     std::abs(e.candidate - e.baseline) >= kLeastShare * step;
  }
  std::ranges::stable_sort(ops, [](const OpChange& x, const OpChange& y) {
    const auto moved = [](const OpChange& op) {
      return std::abs(op.effect.candidate - op.effect.baseline);
    };
    return std::pair(x.significant, moved(x)) > std::pair(y.significant, moved(y));
  });
  return ops;
}

}  // namespace

Result<Matches> match_runs(const Run& baseline, const Run& candidate) {
  TRY(check_alike(baseline, candidate));
  Matches matches = match_ops(baseline, candidate);
  if (matches.matched_share >= kSameJob) return matches;
  return fail_in(candidate.source,
                 fmt::format("is of another job than {}: only {:.0f} % of the "
                             "op time has a counterpart in the other recording",
                             baseline.source, matches.matched_share * 100),
                 fmt::format("{:.0f} % at least", kSameJob * 100), "record the same job twice");
}

Result<RunComparison> compare_runs(const Run& baseline, const Run& candidate,
                                   const EffectOptions& options) {
  const Matches matches = TRY(match_runs(baseline, candidate));
  RunComparison result;
  result.quantities = compare_quantities(baseline, candidate, options);
  result.ops = compare_ops(baseline, candidate, matches, result.quantities.front(), options);
  result.matched_share = matches.matched_share;
  result.same_shapes = matches.same_shapes;
  return result;
}

}  // namespace rehearse::compare
