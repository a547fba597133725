#include "tests/validation/studies/anchored_accuracy.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kGiven[] = {0, 1, 2, 3, 5};
constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kDraws = 20;  // for each group and number of given rows

struct Row {
  double measured, samples;
  bool fitted;  ///< gave constants of the program
  step::StepParts parts;
};

std::optional<Row> predicted(const MeasuredJob& job) {
  std::optional<Row> best;
  for (const JobFile& choice : job.choices) {
    const Result<step::Step> step =
        step::predict(choice.spec, choice.cluster,
                      {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
    if (!step || (best && best->parts.time.value <= step->time.value)) continue;
    best = Row{.measured = job.number("step_s").value_or(0),
               .samples = choice.spec.training.global_batch,
               .fitted = job.use == Use::kFitted,
               .parts = step::parts_of(*step, choice.spec, choice.cluster)};
  }
  return best;
}

/// The row of the plan predicted best, which a user would measure first.
std::size_t first_plan(const std::vector<Row>& rows) {
  std::vector<MeasuredPlan> plans;
  for (const Row& row : rows)
    plans.push_back({{}, row.measured / row.samples, row.parts.time.value.s() / row.samples});
  return predicted_best(plans);
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

/// The suite of a table of rows by group, and its plan choice. Rows are given at random, or the
/// `first` plan is.
void judge(const std::string& table, const std::map<std::string, std::vector<Row>>& groups,
           std::size_t given, bool first, AnchoredAccuracy& into) {
  std::vector<double> errors;
  std::size_t fitted_rows = 0;
  Intervals intervals;
  std::vector<MeasuredPlan> plans;
  Random random = random_stream(kSeed, given);
  for (const auto& group : groups) {
    const std::string& name = group.first;
    const std::vector<Row>& rows = group.second;
    if (rows.size() < given + 2) continue;
    for (std::size_t draw = 0; draw < (given == 0 || first ? 1 : kDraws); ++draw) {
      const std::vector<std::size_t> known =
          first ? std::vector{first_plan(rows)} : drawn(rows.size(), given, random);
      std::vector<const step::StepParts*> parts;
      std::vector<Seconds> measured;
      for (const std::size_t i : known) {
        parts.push_back(&rows[i].parts);
        measured.push_back(Seconds::s(rows[i].measured));
      }
      std::optional<step::FactorFit> fit;
      if (given > 0) {
        Result<step::FactorFit> fitted = step::fit_parts(parts, measured);
        if (!fitted) continue;  // no factor gives a stalled run
        fit = std::move(*fitted);
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (std::find(known.begin(), known.end(), i) != known.end()) continue;
        const Estimate<Seconds> step =
            fit ? step::corrected(rows[i].parts, *fit, parts) : rows[i].parts.time;
        errors.push_back(step.value.s() / rows[i].measured - 1);
        fitted_rows += rows[i].fitted;
        intervals.add(Seconds::s(rows[i].measured), step);
        plans.push_back({fmt::format("{} {}", name, draw), rows[i].measured / rows[i].samples,
                         step.value.s() / rows[i].samples});
      }
    }
  }
  if (errors.empty()) return;
  const std::string name = first ? fmt::format("anchored/{}, first given", table)
                                 : fmt::format("anchored/{}, {} given", table, given);
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
      tables[job.table][job.group].push_back(*row);
  }
  AnchoredAccuracy accuracy;
  for (const auto& [table, groups] : tables) {
    for (const std::size_t given : kGiven) judge(table, groups, given, false, accuracy);
    judge(table, groups, 1, true, accuracy);
  }
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

Some measured steps of a model on equal GPUs are given, drawn {} times at random, or that of the plan
predicted best (*first*), which a user would measure first. The fit of `calibrate job` then predicts
the others. The constants of *nanotron* were fitted to its rows.

{})",
      kDraws, table.markdown());
}

}  // namespace rehearse::cli
