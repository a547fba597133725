#include "cli/config/job_account.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/config/job_input.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {

std::optional<double> steps_to(const std::optional<Target>& target,
                               const workload::Layout& layout) {
  if (!target) return std::nullopt;
  if (target->steps) return target->steps;
  const double samples =
      target->samples ? *target->samples : *target->tokens / layout.tokens_per_sample;
  return samples / layout.samples_per_step;
}

std::vector<cost::PoweredDevices> devices_of(const cluster::Cluster& cluster,
                                             const step::Step& step) {
  std::vector<cost::PoweredDevices> kinds;
  for (const cluster::Device& device : cluster.devices()) {
    auto kind =
        std::ranges::find_if(kinds, [&](const auto& known) { return known.name == device.model; });
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

cost::StepAccount account_of_step(const JobFile& file, const step::Step& step) {
  cost::Place place = file.place;
  place.today = today();
  if (const std::optional<double> steps = steps_to(file.target, step.layout))
    place.lasts = step.time.value * *steps;
  cost::StepAccount account = cost::account_of(step.time, devices_of(file.cluster, step), place);
  if (!file.input) return account;
  const Usd requests = requests_of_step(step.layout, file.cluster, *file.input);
  if (!(requests > Usd::usd(0))) return account;
  account.notes.push_back(fmt::format("requests to storage: {} per step{}", to_string(requests),
                                      account.money ? ", in its cost" : ""));
  if (!account.money) return account;
  account.money->value += requests;
  account.money->low += requests;
  account.money->high += requests;
  return account;
}

cost::Day today() {
  return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
}

}  // namespace rehearse::cli
