#include "tests/validation/studies/job_accuracy.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

/// `conditions`: absent, those of the job.
Result<JobPrediction> predict(const MeasuredJob& row, const step::Conditions* conditions,
                              std::span<const compute::Calibration> calibrations) {
  std::optional<JobPrediction> best;
  std::optional<Status> refusal;
  for (const JobFile& choice : row.choices) {
    step::Spec spec = choice.spec;
    if (conditions) spec.conditions = *conditions;
    const Result<step::Step> step = step::predict(spec, choice.cluster,
                                                  {.fidelity = step::Fidelity::kClosed,
                                                   .counterfactuals = false,
                                                   .calibrations = calibrations});
    if (!step) {
      if (!refusal) refusal = forward(step);
      continue;
    }
    if (!best || step->time.value < best->step.value)
      best = JobPrediction{.table = row.table,
                           .name = row.name,
                           .group = row.group,
                           .samples = spec.training.global_batch,
                           .measured = Seconds::s(row.number("step_s").value_or(0)),
                           .step = step->time,
                           .parts = step->occupancy,
                           .use = row.use};
  }
  if (!best) return forward(*refusal);
  return std::move(*best);
}

}  // namespace

Result<JobPrediction> predict_row(const MeasuredJob& row) {
  return predict(row, nullptr, compute::shipped_calibrations());
}

Result<JobPrediction> predict_row(const MeasuredJob& row, const step::Conditions& conditions,
                                  std::span<const compute::Calibration> calibrations) {
  return predict(row, &conditions, calibrations);
}

JobAccuracy measure_job_accuracy(const std::vector<MeasuredJob>& jobs) {
  JobAccuracy accuracy;
  std::vector<std::string> order;
  std::map<std::string, JobCase> cases;
  for (const MeasuredJob& row : jobs) {
    Result<JobPrediction> prediction = predict_row(row);
    if (!prediction) {
      accuracy.left_out.push_back(fmt::format("{}: {}", row.name, to_string(prediction.error())));
      continue;
    }
    const auto [found, is_new] = cases.try_emplace(row.of, JobCase{.name = row.of});
    if (is_new) order.push_back(row.of);
    found->second.rows.push_back(std::move(*prediction));
  }
  std::vector<std::string> tables;
  std::map<std::string, std::vector<MeasuredPlan>> plans;
  for (const std::string& name : order) {
    for (const JobPrediction& p : cases[name].rows) {
      if (p.group.empty()) continue;
      const auto [found, is_new] = plans.try_emplace(p.table);
      if (is_new) tables.push_back(p.table);
      found->second.push_back({p.group, p.measured.s() / p.samples, p.step.value.s() / p.samples});
    }
    accuracy.cases.push_back(std::move(cases[name]));
  }
  for (const std::string& table : tables)
    if (std::optional<PlanChoice> choice = choice_of(table, plans[table]))
      accuracy.choices.push_back(std::move(*choice));
  return accuracy;
}

}  // namespace rehearse::cli
