#include "cli/commands/simulate_job_file.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/step_report.h"
#include "cli/commands/step_result.h"
#include "cli/output/job_events.h"
#include "cli/output/result.h"
#include "cli/report/markdown.h"
#include "cli/report/report.h"
#include "models/step/devices.h"
#include "sim/base/file.h"
#include "sim/cluster/catalog.h"
#include "sim/engine/simgrid.h"
#include "strategies/lay_out.h"
#include "strategies/memory_savers.h"

namespace rehearse::cli {
namespace {

step::Fidelity fidelity_of(SimulateFidelity fidelity) {
  switch (fidelity) {
    case SimulateFidelity::kClosed:
      return step::Fidelity::kClosed;
    case SimulateFidelity::kMessage:
      return step::Fidelity::kMessage;
    case SimulateFidelity::kSimgrid:
      return step::Fidelity::kSimgrid;
  }
  return step::Fidelity::kMessage;
}

/// What would make the job fit; nothing where it does.
std::vector<std::string> remedies_of(const step::Spec& spec, const step::Step& step,
                                     const cluster::Cluster& cluster) {
  if (memory::fullest(step.memory).fit == memory::Fit::kFits) return {};
  std::vector<memory::Trial> trials;
  for (const strategies::MemorySaver& saver : strategies::memory_savers(spec.training, spec.plan))
    if (const Result<workload::Layout> layout =
            strategies::lay_out(spec.workload, saver.training, saver.plan))
      if (Result<std::vector<memory::StageMemory>> memory = step::memory_on(*layout, cluster))
        trials.push_back({saver.change, std::move(*memory)});
  return memory::remedies(step.memory, trials);
}

std::optional<double> steps_to(const std::optional<Target>& target,
                               const workload::Layout& layout) {
  if (!target) return std::nullopt;
  if (target->steps) return target->steps;
  const double samples =
      target->samples ? *target->samples : *target->tokens / layout.tokens_per_sample;
  return samples / layout.samples_per_step;
}

/// All devices of the cluster, by kind: those that the plan does not use are paid for and idle.
std::vector<cost::PoweredDevices> devices_of(const cluster::Cluster& cluster,
                                             const step::Step& step) {
  std::vector<cost::PoweredDevices> kinds;
  for (const cluster::Device& device : cluster.devices()) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& known) { return known.name == device.model; });
    if (kind == kinds.end()) {
      const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device.model);
      kind = kinds.insert(kind, {device.model, gpu ? *gpu : nullptr, 0, 0});
    }
    kind->count += 1;
  }
  for (cost::PoweredDevices& kind : kinds)
    for (const step::DeviceUse& use : step.devices)
      if (use.name == kind.name)
        kind.busy = std::clamp(use.busy / (step.time.value * kind.count), 0.0, 1.0);
  return kinds;
}

Result<PredictedJob> predict_job(const SimulateOptions& options) {
  Result<JobFile> file = load_job(options.job_file, options.cluster, options.slice);
  if (!file) return forward(file);
  if (!file->has_plan) file->assumed.push_back("plan: one rank, as the file has none");
  const step::Fidelity fidelity = fidelity_of(options.fidelity);
  Result<step::Step> step =
      step::predict(file->spec, file->cluster, {.fidelity = fidelity, .unfold = options.unfold});
  if (!step) return wrong_in(options.job_file, step.error());
  const std::size_t devices = file->cluster.devices().size();
  if (step->layout.ranks() < devices)
    step->warnings.push_back(fmt::format("{} of {} devices have nothing to do",
                                         devices - step->layout.ranks(), devices));
  cost::StepAccount account =
      cost::account_of(step->time, devices_of(file->cluster, *step), file->place);
  std::vector<std::string> remedies = remedies_of(file->spec, *step, file->cluster);
  const std::optional<double> steps = steps_to(file->target, step->layout);
  return PredictedJob{std::move(*file), std::move(*step),    std::move(account),
                      fidelity,         std::move(remedies), steps};
}

}  // namespace

Result<Exit> simulate_job_file(const SimulateOptions& options, const Globals& globals) {
  if (!options.perfetto.empty())  // before long work: can it be written?
    if (const Result<PendingFile> file = PendingFile::create(options.perfetto); !file)
      return forward(file);
  if (Status ok = check_report(options.report); !ok) return forward(ok);
  if (options.fidelity == SimulateFidelity::kSimgrid)
    if (Status ok = engine::check_simgrid(); !ok) return forward(ok);
  const Result<PredictedJob> job = predict_job(options);
  if (!job) return forward(job);
  for (const std::string& warning : job->step.warnings) globals.warn(warning);
  if (!options.perfetto.empty())
    if (Status ok =
            draw_job(options.perfetto, job->step.job, job->step.lowered, job->step.timeline);
        !ok)
      return forward(ok);
  if (!options.report.empty()) {
    const Result<ReportDetails> details = step_details(*job, options.job_file, globals);
    if (!details) return forward(details);
    if (Status ok = write_report(options.report, step_json(*job), *details); !ok)
      return forward(ok);
  }
  const Formats formats = {
      .text = [&] { return step_text(*job); },
      .json = [&] { return step_json(*job); },
      .table = [&] { return stage_table(*job); },
      .markdown = [&] { return markdown_of(step_json(*job), stage_table(*job), "Stages"); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace rehearse::cli
