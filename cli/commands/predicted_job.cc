#include "cli/commands/predicted_job.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/step/devices.h"
#include "sim/cluster/catalog.h"
#include "strategies/lay_out.h"
#include "strategies/memory_savers.h"

namespace rehearse::cli {
namespace {

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

}  // namespace

PredictedJob predicted_job(JobFile file, step::Step step, step::Fidelity fidelity) {
  const std::size_t devices = file.cluster.devices().size();
  if (step.layout.ranks() < devices)
    step.warnings.push_back(
        fmt::format("{} of {} devices have nothing to do", devices - step.layout.ranks(), devices));
  cost::StepAccount account =
      cost::account_of(step.time, devices_of(file.cluster, step), file.place);
  std::vector<std::string> remedies = remedies_of(file.spec, step, file.cluster);
  const std::optional<double> steps = steps_to(file.target, step.layout);
  return PredictedJob{std::move(file), std::move(step),     std::move(account),
                      fidelity,        std::move(remedies), steps};
}

}  // namespace rehearse::cli
