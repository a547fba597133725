#include "cli/check/gate.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/output/table.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using compare::Effect, compare::OpChange, compare::Verdict;

/// "+1.2 % (99 %: -0.3 to +2.7 %)", with the interval or the steps on which the verdict rests.
std::string change_text(const Effect& effect, double wrong) {
  if (effect.error <= 0) return signed_percent(effect.change);
  if (compare::in_each_step(effect, 0, wrong) && effect.freedom < compare::kFewSteps)
    return fmt::format("{} (in each step of the candidate by at least {})",
                       signed_percent(effect.change), signed_percent(effect.apart));
  return fmt::format("{} ({} % sure: {} to {})", signed_percent(effect.change),
                     fmt::format("{:g}", (1 - 2 * wrong) * 100), signed_percent(effect.low(wrong)),
                     signed_percent(effect.high(wrong)));
}

std::string needed_text(const Judged& judged, const GateInput& input) {
  if (!judged.steps_needed)
    return "; no number of steps would decide this, because repeated runs of this job differ too "
           "much";
  const std::size_t had = std::min(input.baseline.steps(), input.candidate.steps());
  // With more steps than that, this one lay at the very edge.
  return fmt::format("; {} were compared; a decision needs about {} in each recording",
                     counted(had, "step"), grouped(std::max(*judged.steps_needed, had + 1)));
}

/// "; in each step, loader takes 46 ms instead of 0.8 ms": the op that explains most of an increase of
/// the step, also where the steps are too few for a verdict.
std::string evidence_text(const compare::RunComparison& comparison) {
  const Effect& step = comparison.quantities.front().effect;
  if (step.change <= 0) return "";
  const OpChange* most = nullptr;
  for (const OpChange& op : comparison.ops) {
    const double part = op.effect.apart * op.effect.scale / (step.change * step.scale);
    if (part >= compare::kExplains &&
        (!most || std::abs(op.effect.apart * op.effect.scale) >
                      std::abs(most->effect.apart * most->effect.scale)))
      most = &op;
  }
  if (!most) return "";
  return fmt::format("; in each step, {} takes {} instead of {}", shortened(most->name, 60),
                     to_string(Seconds::s(most->effect.candidate)),
                     to_string(Seconds::s(most->effect.baseline)));
}

class LimitJudge {
 public:
  explicit LimitJudge(Gate& gate)
      : gate_(gate), wrong_(compare::kWrong / static_cast<double>(gate.input.limits.size())) {}

  Status add(const Limit& limit) {
    switch (limit.of) {
      case Limit::Of::kQuantity: return add_quantity(limit);
      case Limit::Of::kOps: return add_ops(limit);
      case Limit::Of::kCostPerStep:
      case Limit::Of::kCostPerEpoch: return add_cost(limit);
    }
    return {};
  }

 private:
  /// `wrong`: the allowed probability of a wrong verdict.
  void keep(const Limit& limit, Verdict verdict, const Effect& effect, double wrong,
            std::string message) {
    const bool told = verdict != Verdict::kInconclusive;
    if (told && !gate_.lacks.empty()) {
      verdict = Verdict::kInconclusive;
      message += fmt::format(", but {}", gate_.lacks);
    }
    Judged judged{.limit = limit, .verdict = verdict, .effect = std::nullopt};
    if (effect.error > 0) judged.effect = effect;
    if (!told) {
      judged.steps_needed = compare::steps_needed(
          effect, limit.rise.value_or(2 * std::abs(effect.change)), gate_.input.effect, wrong);
      message += needed_text(judged, gate_.input);
    }
    if (verdict != Verdict::kPass && limit.of == Limit::Of::kQuantity && limit.name == "step_time")
      message += evidence_text(gate_.comparison);
    gate_.findings.add(
        {describe(limit), verdict, std::move(message), gate_.input.candidate.source});
    gate_.limits.push_back(std::move(judged));
  }

  void judge_rise(const Limit& limit, const Effect& effect) {
    // The limit itself is allowed, and changes are shown to a hundredth of a percent: a change that
    // is shown as equal to the limit is within it. A quantity that was measured once has no error.
    constexpr double kRounding = 0.5e-4;
    const double most = *limit.rise + kRounding;
    const Verdict verdict = effect.error > 0       ? compare::judge(effect, most, wrong_)
                            : effect.change > most ? Verdict::kFail
                                                   : Verdict::kPass;
    std::string message = change_text(effect, wrong_);
    if (verdict == Verdict::kPass)
      message +=
          fmt::format(": an increase of {} is {}", allowed(limit),
                      effect.error > 0 && effect.high(wrong_) >= most ? "allowed" : "excluded");
    else if (verdict == Verdict::kFail)
      message += fmt::format(": exceeds the limit of {}", allowed(limit));
    else if (effect.change > 0 &&
             (compare::is_rise(effect, wrong_) || compare::in_each_step(effect, 0, wrong_)))
      message +=
          fmt::format(": undecided; it has increased, but perhaps by less than {}", allowed(limit));
    else
      message +=
          fmt::format(": undecided; the interval includes both no change and an increase of {}",
                      allowed(limit));
    keep(limit, verdict, effect, wrong_, std::move(message));
  }

  /// Fails if the value exceeds the amount, and not by chance.
  void judge_amount(const Limit& limit, const Effect& effect) {
    const Verdict verdict = effect.change <= 0                 ? Verdict::kPass
                            : compare::is_rise(effect, wrong_) ? Verdict::kFail
                                                               : Verdict::kInconclusive;
    keep(limit, verdict, effect, wrong_,
         fmt::format("{} of {} allowed{}", amount(limit, effect.candidate), allowed(limit),
                     verdict == Verdict::kInconclusive ? ": above, but within noise" : ""));
  }

  Status add_quantity(const Limit& limit) {
    const auto& all = gate_.comparison.quantities;
    const auto at = std::ranges::find(all, limit.name, &compare::Quantity::name);
    const compare::Run& c = gate_.input.candidate;
    if (at == all.end()) {
      if (limit.name == "memory" && c.memory && limit.most) {
        judge_amount(limit, memory_effect(*limit.most));
        return {};
      }
      if (limit.name != "memory" && !series_of(gate_.input.baseline, limit.name).empty() &&
          !series_of(c, limit.name).empty()) {
        keep(limit, Verdict::kPass, {}, wrong_, "none in either");
        return {};
      }
      return fail(Diagnostic{
          .file = c.source,
          .key = limit.name,
          .problem = "has a limit, but the recordings do not contain it",
          .expected = limit.name == "energy"   ? "power read in both (rehearse profile --power)"
                      : limit.name == "memory" ? "allocations recorded in both (rehearse profile)"
                                               : "work of a device in both"});
    }
    if (limit.rise) {
      judge_rise(limit, at->effect);
    } else if (!at->measured_by_step) {
      judge_amount(limit, memory_effect(*limit.most));
    } else {
      judge_amount(
          limit, compare::measure_level(series_of(c, limit.name), *limit.most, gate_.input.effect));
    }
    return {};
  }

  Effect memory_effect(double most) const {
    const double bytes = gate_.input.candidate.memory->b();
    return {.baseline = most, .candidate = bytes, .change = bytes / most - 1, .scale = most};
  }

  static const std::vector<double>& series_of(const compare::Run& run, std::string_view name) {
    if (name == "compute") return run.compute;
    if (name == "exposed_communication") return run.exposed_communication;
    if (name == "copies") return run.copies;
    if (name == "launch_gaps") return run.launch_gaps;
    if (name == "energy") return run.energy;
    return run.step_time;
  }

  /// Judges each op that matches the pattern, and reports the worst.
  Status add_ops(const Limit& limit) {
    std::vector<const OpChange*> meant;
    std::vector<std::string_view> names;
    for (const OpChange& op : gate_.comparison.ops) {
      names.push_back(op.name);
      if (op.effect.baseline > 0 && matches_wildcard(limit.name, op.name)) meant.push_back(&op);
    }
    if (meant.empty())
      return fail(Diagnostic{
          .file = gate_.input.baseline.source,
          .key = describe(limit),
          .problem = "matches no op of the baseline",
          .nearest =
              suggest(limit.name, std::span(names).first(std::min<std::size_t>(names.size(), 5)))});
    const double wrong = wrong_ / static_cast<double>(meant.size());
    const auto rank = [&](const OpChange* op) {
      // Too small a part of the step to be measured: it cannot rise by much.
      if (op->effect.error <= 0) return std::pair(0, op->effect.change);
      const Verdict v = compare::judge(op->effect, *limit.rise, wrong);
      return std::pair(v == Verdict::kFail           ? 2
                       : v == Verdict::kInconclusive ? 1
                                                     : 0,
                       op->effect.change);
    };
    const OpChange* worst = *std::ranges::max_element(
        meant, [&](const OpChange* a, const OpChange* b) { return rank(a) < rank(b); });
    const Verdict verdict = rank(worst).first == 2   ? Verdict::kFail
                            : rank(worst).first == 1 ? Verdict::kInconclusive
                                                     : Verdict::kPass;
    keep(limit, verdict, worst->effect, wrong,
         fmt::format("{} of {} that match: {} {}", verdict == Verdict::kPass ? "most" : "worst",
                     counted(meant.size(), "op"), shortened(worst->name, 60),
                     change_text(worst->effect, wrong)));
    return {};
  }

  Status add_cost(const Limit& limit) {
    const GatePlace& place = gate_.input.place;
    if (!gate_.cost)
      return fail(Diagnostic{.key = limit.name,
                             .problem = "has a limit, but the instance type is unknown",
                             .expected = "--instance NAME"});
    double steps = 1;
    if (limit.of == Limit::Of::kCostPerEpoch) {
      if (!place.steps_per_epoch)
        return fail(Diagnostic{.key = limit.name,
                               .problem = "has a limit, but the steps per epoch are unknown",
                               .expected = "--steps-per-epoch N"});
      steps = *place.steps_per_epoch;
    }
    // The cost is the step time multiplied by a price, so its limit is a limit on the step time.
    const double of_step = gate_.cost->candidate.value.usd() * steps /
                           compare::level_of(gate_.input.candidate.step_time);
    Effect effect = compare::measure_level(gate_.input.candidate.step_time, *limit.most / of_step,
                                           gate_.input.effect);
    for (double* value : {&effect.baseline, &effect.candidate, &effect.scale}) *value *= of_step;
    judge_amount(limit, effect);
    return {};
  }

  Gate& gate_;
  double wrong_;
};

Estimate<Seconds> step_of(const compare::Run& run, const compare::EffectOptions& options) {
  const double level = compare::level_of(run.step_time);
  const Effect effect = compare::measure_level(run.step_time, level, options);
  return {Seconds::s(level), Seconds::s(level * (1 + effect.low(0.05))),
          Seconds::s(level * (1 + effect.high(0.05))), Provenance::kRecorded};
}

Result<std::optional<GateCost>> cost_of(const GateInput& input) {
  if (input.place.instance.empty()) return std::nullopt;
  TRY(cluster::find_instance(input.place.instance));
  const cost::Place place{.rented = {{input.place.instance, input.place.count}},
                          .region = input.place.region};
  std::vector<std::string> prices;  // the same of both
  const auto money = [&](const compare::Run& run) {
    prices.clear();
    return cost::money_of(step_of(run, input.effect), place, prices);
  };
  const std::optional<Estimate<Usd>> before = money(input.baseline), after = money(input.candidate);
  if (!before || !after)
    return fail(Diagnostic{.key = "--instance",
                           .problem = prices.front(),
                           .expected = "an instance with a price",
                           .nearest = "rehearse catalog prices lists them"});
  return GateCost{.baseline = *before, .candidate = *after, .price = prices.front()};
}

/// Whether all work on the devices (else on the host) slowed down equally: the share of its time,
/// over at least five ops, whose change is about that of the step.
bool all_ops_slower(const Gate& gate, double of_step) {
  const bool on_devices = !gate.input.candidate.devices.empty();
  double all = 0, alike = 0;
  std::size_t count = 0;
  for (const OpChange& op : gate.comparison.ops) {
    const Effect& e = op.effect;
    if (e.baseline <= 0 || e.error <= 0) continue;
    if (on_devices && op.kind == compare::OpKind::kHost) continue;
    all += e.baseline;
    if (e.change < 0.5 * of_step || e.change > 2 * of_step) continue;
    alike += e.baseline;
    ++count;
  }
  return count >= 5 && alike > 0.8 * all;
}

/// The reason why the verdict would not rest on recorded data: ops that matter are missing in a
/// recording that lacks records. Empty if there is none.
std::string what_lacks(const compare::Run& b, const compare::Run& c,
                       const compare::RunComparison& comparison) {
  const bool on_devices = !c.devices.empty();
  const double least = compare::kLeastShare * compare::level_of(b.step_time);
  const auto missing = [&](const compare::Run& run, double OpChange::*there,
                           double OpChange::*elsewhere) -> std::string {
    std::size_t ops = 0;
    for (const OpChange& op : comparison.ops)
      if (!(on_devices && op.kind == compare::OpKind::kHost) && op.*there < 0.99 * op.*elsewhere &&
          std::max(op.effect.baseline, op.effect.candidate) >= least)
        ++ops;
    if (!run.incomplete || ops == 0) return "";
    return fmt::format("{} lacks records, and {} are less frequent in it than in the other",
                       run.source, counted(ops, "op"));
  };
  const std::string of_candidate = missing(c, &OpChange::calls_after, &OpChange::calls_before);
  return of_candidate.empty() ? missing(b, &OpChange::calls_before, &OpChange::calls_after)
                              : of_candidate;
}

/// Facts that a reader should know in addition to the verdict.
std::vector<Warning> warnings_of(const Gate& gate) {
  std::vector<Warning> warnings;
  const compare::Run &b = gate.input.baseline, &c = gate.input.candidate;
  for (const compare::Run* run : {&b, &c})
    if (run->incomplete)
      warnings.push_back({fmt::format("{} lacks records: only the {} before the first gap are used",
                                      run->source, counted(run->steps(), "step")),
                          "record the run again to its end"});
  const auto mean = [](const std::vector<double>& steps) {
    double sum = 0;
    for (const double s : steps) sum += s;
    return sum / static_cast<double>(steps.size());
  };
  const double typical = gate.comparison.quantities.front().effect.change;
  const double all = mean(c.step_time) / mean(b.step_time) - 1;
  if (all > 0.03 && all - typical > 0.03)
    warnings.push_back(
        {fmt::format("the mean over all steps changed by {}, the typical step by {}: the candidate "
                     "has slow steps that the typical step leaves out",
                     signed_percent(all), signed_percent(typical)),
         "record more steps, and inspect the slow ones with rehearse inspect"});
  if (typical > 0.02 && all_ops_slower(gate, typical))
    warnings.push_back(
        {"nearly every op slowed down by as much as the step, which points to the machine, not to "
         "the program",
         "check the machine's clocks and other load first, then record again"});
  if (b.step_time == c.step_time && !gate.input.begins)
    warnings.push_back(
        {"baseline and candidate have identical step times: they are probably the same recording",
         "pass the recording of the candidate"});
  if (b.steps_from != c.steps_from)
    warnings.push_back(
        {fmt::format(
             "steps are found by {} in the baseline and by {} in the candidate, so they may differ",
             b.steps_from, c.steps_from),
         "mark the steps of both runs the same way"});
  if (gate.comparison.same_shapes < 0.5)
    warnings.push_back(
        {fmt::format("{:.0f} % of the time of operators has other input shapes than the baseline: "
                     "runs with another batch size or sequence length cannot be compared",
                     (1 - gate.comparison.same_shapes) * 100),
         "record the baseline again with the candidate's batch size and sequence length"});
  return warnings;
}

}  // namespace

Result<Gate> run_gate(GateInput input) {
  compare::RunComparison comparison =
      TRY(compare::compare_runs(input.baseline, input.candidate, input.effect));
  std::optional<GateCost> cost = TRY(cost_of(input));
  Gate gate{
      .input = std::move(input), .comparison = std::move(comparison), .cost = std::move(cost)};
  gate.lacks = what_lacks(gate.input.baseline, gate.input.candidate, gate.comparison);
  LimitJudge judge(gate);
  for (const Limit& limit : gate.input.limits) TRY(judge.add(limit));
  const auto note = [&](std::string name, std::string what) {
    gate.findings.add_note(
        {std::move(name), Verdict::kPass, std::move(what), gate.input.candidate.source});
  };
  for (const compare::Quantity& q : gate.comparison.quantities)
    if (q.significant)
      note(std::string(q.name), fmt::format("changed by {}", signed_percent(q.effect.change)));
  for (const OpChange& op : gate.comparison.ops)
    if (op.significant)
      note(fmt::format("{} {}", to_string(op.kind), shortened(op.name, 60)),
           fmt::format("{} per step in the baseline, {} in the candidate",
                       to_string(Seconds::s(op.effect.baseline)),
                       to_string(Seconds::s(op.effect.candidate))));
  gate.warnings = warnings_of(gate);
  return gate;
}

}  // namespace rehearse::cli
