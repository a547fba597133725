#include "tests/validation/studies/anchored_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

using step::ByFactor;
using step::kFactors;

constexpr std::size_t kGiven[] = {0, 1, 2, 3, 5};
constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kDraws = 20;  // for each group and number of given rows

struct Row {
  double measured, samples;
  bool fitted;  ///< gave constants of the program
  Estimate<Seconds> step;
  Seconds stall;
  ByFactor<double> shares;
  ByFactor<program::Interval> before;
  step::Regime regime;
};

std::optional<Row> predicted(const MeasuredJob& job) {
  std::optional<Row> best;
  for (const JobFile& choice : job.choices) {
    const Result<step::Step> step =
        step::predict(choice.spec, choice.cluster,
                      {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
    if (!step || (best && best->step.value <= step->time.value)) continue;
    const step::Situation situation = step::situation_of(
        step->layout, choice.cluster, choice.spec.training.microbatch, choice.spec.plan.zero > 0);
    const host::Implementation& host = choice.spec.conditions.host;
    best = Row{.measured = job.number("step_s").value_or(0),
               .samples = choice.spec.training.global_batch,
               .fitted = job.use == Use::kFitted,
               .step = step->time,
               .stall = step->stall,
               .shares = step::shares_of(*step, situation.nodes > 1),
               .before = {{step->computing,
                           {host.fastest, host.slowest},
                           {1 / (1 + situation.network_width), 1 + situation.network_width},
                           step::kFixedTime}},
               .regime = step->regime};
  }
  return best;
}

double times(const Row& row, const ByFactor<double>& factors) {
  double log = 0;
  for (std::size_t k = 0; k < kFactors; ++k) log += row.shares[k] * std::log(factors[k]);
  return std::exp(log);
}

/// Rows by their numbers: `given` of them at random.
std::vector<std::size_t> drawn(std::size_t rows, std::size_t given, Random& random) {
  std::vector<std::size_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  for (std::size_t i = 0; i < given; ++i)
    std::swap(numbers[i], numbers[i + random.below(static_cast<std::uint32_t>(rows - i))]);
  numbers.resize(given);
  return numbers;
}

/// The step of a row after a fit to others.
Estimate<Seconds> after(const Row& row, const step::FactorFit& fit,
                        std::vector<std::string> regimes) {
  const Seconds value = row.step.value * times(row, fit.factors);
  const bool measured = std::find(regimes.begin(), regimes.end(), row.regime.name) != regimes.end();
  Estimate<Seconds> step = step::interval_of({value, value, value, row.step.provenance}, row.shares,
                                             {fit.after, step::kStepError, std::move(regimes)});
  if (!measured) step = step::widened(step, step::beyond_factors(row.regime));
  step.high += row.stall;
  return step;
}

/// The suite of a table of rows by group, and its plan choice.
void judge(const std::string& table, const std::map<std::string, std::vector<Row>>& groups,
           std::size_t given, AnchoredAccuracy& into) {
  std::vector<double> errors;
  std::size_t fitted_rows = 0;
  Intervals intervals;
  std::vector<MeasuredPlan> plans;
  Random random = random_stream(kSeed, given);
  for (const auto& group : groups) {
    const std::string& name = group.first;
    const std::vector<Row>& rows = group.second;
    if (rows.size() < given + 2) continue;
    for (std::size_t draw = 0; draw < (given == 0 ? 1 : kDraws); ++draw) {
      const std::vector<std::size_t> known = drawn(rows.size(), given, random);
      std::vector<step::MeasuredStep> measured;
      std::vector<std::string> regimes;
      for (const std::size_t i : known) {
        program::Interval regime = step::beyond_factors(rows[i].regime);
        regime.high += rows[i].stall / rows[i].step.value;
        measured.push_back({.name = name,
                            .measured = Seconds::s(rows[i].measured),
                            .at_peak = Seconds::s(0),
                            .regime = regime});
        regimes.emplace_back(rows[i].regime.name);
      }
      std::optional<step::FactorFit> fit;
      if (given > 0) {
        Result<step::FactorFit> fitted = step::fit_factors(
            measured, rows[known.front()].before,
            [&](std::size_t i, const ByFactor<double>& factors) -> Result<Seconds> {
              return rows[known[i]].step.value * times(rows[known[i]], factors);
            });
        if (!fitted) continue;  // no factor gives a stalled run
        fit = std::move(*fitted);
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (std::find(known.begin(), known.end(), i) != known.end()) continue;
        const Estimate<Seconds> step = fit ? after(rows[i], *fit, regimes) : rows[i].step;
        errors.push_back(step.value.s() / rows[i].measured - 1);
        fitted_rows += rows[i].fitted;
        intervals.add(Seconds::s(rows[i].measured), step);
        plans.push_back({fmt::format("{} {}", name, draw), rows[i].measured / rows[i].samples,
                         step.value.s() / rows[i].samples});
      }
    }
  }
  if (errors.empty()) return;
  const std::string name = fmt::format("anchored/{}, {} given", table, given);
  SuiteSummary suite = summary_of(name, errors);
  intervals.summarize(suite);
  suite.fitted_rows = fitted_rows;
  suite.blind_rows = errors.size() - fitted_rows;
  into.suites.push_back(std::move(suite));
  if (std::optional<PlanChoice> choice = choice_of(name, plans))
    into.choices.push_back(std::move(*choice));
}

}  // namespace

AnchoredAccuracy measure_anchored_accuracy(const std::vector<MeasuredJob>& jobs) {
  std::map<std::string, std::map<std::string, std::vector<Row>>> tables;
  for (const MeasuredJob& job : jobs) {
    if (job.group.empty()) continue;
    if (std::optional<Row> row = predicted(job); row && row->measured > 0)
      tables[job.table][job.group].push_back(std::move(*row));
  }
  AnchoredAccuracy accuracy;
  for (const auto& [table, groups] : tables)
    for (const std::size_t given : kGiven) judge(table, groups, given, accuracy);
  return accuracy;
}

std::string anchored_section(const AnchoredAccuracy& accuracy) {
  Table table({{"table, measured steps given", Align::kLeft},
               {"rows"},
               {"median error (%)"},
               {"in the interval (%)"},
               {"median width"},
               {"tau"},
               {"regret (%)"},
               {"worst (%)"}});
  for (const SuiteSummary& suite : accuracy.suites) {
    const auto choice =
        std::find_if(accuracy.choices.begin(), accuracy.choices.end(),
                     [&](const PlanChoice& each) { return each.name == suite.name; });
    const bool chosen = choice != accuracy.choices.end();
    table.add({suite.name.substr(suite.name.find('/') + 1), fmt::format("{}", suite.rows),
               fmt::format("{:.1f}", suite.median_error * 100),
               fmt::format("{:.0f}", suite.interval_coverage.value_or(0) * 100),
               fmt::format("{:.2f}", suite.interval_width.value_or(0)),
               chosen && choice->tau ? fmt::format("{:.2f}", *choice->tau) : "–",
               chosen ? fmt::format("{:.1f}", choice->regret * 100) : "–",
               chosen ? fmt::format("{:.0f}", choice->worst_regret * 100) : "–"});
  }
  return fmt::format(
      R"(
## Steps and plans with measured steps given

Some measured steps of a model on equal GPUs are given, drawn {} times at random. The fit of
`calibrate job` then predicts the others. The constants of *nanotron* were fitted to its rows.

{})",
      kDraws, table.markdown());
}

}  // namespace rehearse::cli
