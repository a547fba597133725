#include "cli/commands/predicted_job.h"

#include <fmt/core.h>

#include "cli/config/job_account.h"
#include "cli/config/job_input.h"
#include "sim/base/check.h"
#include "sim/engine/simgrid.h"
#include "strategies/memory_savers.h"
#include "strategies/step/devices.h"
#include "strategies/step/fit_recompute.h"

namespace rehearse::cli {
namespace {

/// Changes that would make the job fit; none if it fits.
std::vector<std::string> remedies_of(const step::Spec& spec, const step::Step& step,
                                     const cluster::Cluster& cluster) {
  if (memory::fullest(step.memory).fit == memory::Fit::kFits) return {};
  std::vector<memory::Trial> trials;
  for (const strategies::MemorySaver& saver : strategies::memory_savers(spec.training, spec.plan))
    if (const Result<workload::Layout> layout =
            step::lay_out_on(cluster, spec.workload, saver.training, saver.plan))
      if (Result<std::vector<memory::StageMemory>> memory = step::memory_on(*layout, cluster))
        trials.push_back({saver.change, std::move(*memory)});
  return memory::remedies(step.memory, trials);
}

}  // namespace

PredictedJob predicted_job(JobFile file, step::Step step, step::StepPath path,
                           step::Fidelity fidelity) {
  const std::size_t devices = file.cluster.devices().size();
  if (step.layout.ranks() < devices)
    step.warnings.push_back(
        {fmt::format("the plan leaves {} of {} devices unused", devices - step.layout.ranks(),
                     devices),
         "run rehearse plan to find a plan that uses all devices, or use a smaller cluster"});
  cost::StepAccount account = account_of_step(file, step);
  std::vector<std::string> remedies = remedies_of(file.spec, step, file.cluster);
  const std::optional<double> steps = steps_to(file.target, step.layout);
  return PredictedJob{std::move(file),     std::move(step), std::move(account), fidelity,
                      std::move(remedies), steps,           std::move(path)};
}

Result<PredictedJob> predict_job(const std::filesystem::path& path, const Prediction& of) {
  if (of.fidelity == step::Fidelity::kSimgrid) TRY(engine::check_simgrid());
  JobFile file = TRY(load_job(path, of.cluster, of.slice));
  if (!file.has_plan) file.assumed.push_back("plan: one rank, because the file has none");
  const auto predicted = [&](const step::PredictOptions& options) -> Result<step::Step> {
    step::Step step = TRY(in_file(path, step::predict(file.spec, file.cluster, options)));
    if (file.input) TRY(in_file(path, feed(input::Feed(*file.input), file.cluster, step)));
    return step;
  };
  std::optional<Seconds> unchanged;
  if (of.changes.any()) {
    const step::Step step = TRY(predicted(
        {.fidelity = of.fidelity, .unfold = of.unfold, .value_only = true, .timeline = false}));
    TRY(match(of.changes, step.layout));
    unchanged = step.time.value;
    TRY(apply(of.changes, file));
  }
  step::Step step = TRY(predicted({.fidelity = of.fidelity,
                                   .unfold = of.unfold,
                                   .counterfactuals = of.counterfactuals,
                                   .timeline = of.timeline,
                                   .path = !of.timeline}));
  if (file.input) file.notes.push_back(feed_note(*file.input, file.cluster, step));
  step::StepPath critical = step::path_of(step);
  step::add_input(step, critical);
  PredictedJob job =
      predicted_job(std::move(file), std::move(step), std::move(critical), of.fidelity);
  job.unchanged = unchanged;
  return job;
}

}  // namespace rehearse::cli
