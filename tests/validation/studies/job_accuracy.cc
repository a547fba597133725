#include "tests/validation/studies/job_accuracy.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

/// Share of pairs in the measured order less the share in the other; of rows of one model on
/// equally many devices.
std::optional<double> ordering_of(const std::vector<JobPrediction>& rows) {
  std::map<std::string, std::vector<const JobPrediction*>> groups;
  for (const JobPrediction& p : rows) groups[p.family].push_back(&p);
  double agree = 0, pairs = 0;
  for (const auto& [key, members] : groups)
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        // Per sample, as batches differ.
        const JobPrediction &a = *members[i], &b = *members[j];
        const double measured = a.measured.s() / a.samples - b.measured.s() / b.samples;
        const double predicted = a.step.value.s() / a.samples - b.step.value.s() / b.samples;
        if (measured == 0 || predicted == 0) continue;
        agree += (measured > 0) == (predicted > 0) ? 1 : -1;
        pairs += 1;
      }
  if (pairs == 0) return std::nullopt;
  return agree / pairs;
}

std::string family_of(const MeasuredJob& row) {
  std::string family = row.job().cluster.devices().front().model;
  for (const char* key : {"workload.hidden", "workload.layers", "workload.sequence"})
    family += fmt::format(" {}", row.number(key).value_or(0));
  return family + fmt::format(" {}", row.job().cluster.devices().size());
}

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
                           .family = family_of(row),
                           .samples = spec.training.global_batch,
                           .measured = Seconds::s(row.number("step_s").value_or(0)),
                           .step = step->time,
                           .parts = step->breakdown,
                           .fitted = row.fitted};
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
  for (const std::string& name : order) {
    cases[name].ordering = ordering_of(cases[name].rows);
    accuracy.cases.push_back(std::move(cases[name]));
  }
  return accuracy;
}

}  // namespace rehearse::cli
