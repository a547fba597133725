#include "tests/validation/studies/throughput/zoo_steps.h"

#include <fmt/core.h>

#include "models/workload/zoo.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

constexpr workload::Elementwise kKernels = workload::Elementwise::kUnfused;

Result<workload::Workload> workload_of(const ZooJob& job) {
  workload::Description description = TRY(workload::find_description(job.model));
  if (job.sequence > 0)
    if (auto* transformer = std::get_if<workload::Transformer>(&description))
      transformer->sequence = job.sequence;
  return workload::workload_of(
      description,
      {.dtype = job.dtype, .attention = workload::Attention::kUnfused, .elementwise = kKernels});
}

Result<cluster::Cluster> cluster_of(const ZooJob& job, const PlacedStep& row,
                                    const ClusterLinks& links) {
  std::string text = fmt::format(
      "cluster: {{device: {}, devices_per_node: {}, nodes: {}, intra_node: {{kind: {}, {}}}",
      job.device, row.devices.front(), row.devices.size(), job.within, links.within);
  if (row.devices.size() > 1)
    // A node with switched NVLinks has a NIC for each device.
    text += fmt::format(", inter_node: {{links: {}, {}}}",
                        job.within == "nvswitch" ? row.devices.front() : 1, links.between);
  return cluster::parse_cluster(text + "}\n", std::string(job.device));
}

Result<step::Step> predict(const ZooJob& job, const PlacedStep& row, const ClusterLinks& links,
                           const step::Conditions& conditions) {
  workload::Workload model = TRY(workload_of(job));
  const cluster::Cluster cluster = TRY(cluster_of(job, row, links));
  step::Spec spec{.workload = std::move(model),
                  .training = {.global_batch = row.batch * row.ranks(),
                               .microbatch = row.batch,
                               .dtype = job.dtype,
                               // Automatic mixed precision keeps them whole.
                               .gradients = workload::Dtype::kFp32},
                  .plan = {},
                  .conditions = conditions};
  spec.plan.data = row.ranks();
  return step::predict(spec, cluster,
                       {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
}

}  // namespace

Result<step::Conditions> conditions_of(const ZooJob& job) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(job.device));
  return step::conditions_for(gpu, kKernels);
}

Result<Estimate<Seconds>> zoo_step(const ZooJob& job, const PlacedStep& row,
                                   const ClusterLinks& links, const step::Conditions& conditions) {
  const step::Step step = TRY(predict(job, row, links, conditions));
  return step.time;
}

Result<step::Conditions> anchored(const ZooJob& job, std::span<const PlacedStep> rows) {
  step::Conditions conditions = TRY(conditions_of(job));
  const ClusterLinks unused{.within = "rate: 1 GB/s", .between = "rate: 1 GB/s"};
  std::vector<step::MeasuredStep> measured;
  for (const PlacedStep& row : rows) {
    const step::Step step = TRY(predict(job, row, unused, conditions));
    measured.push_back({.name = fmt::format("{} batch {:g}", job.model, row.batch),
                        .measured = row.step,
                        .at_peak = step.hardware_flops / step.peak});
  }
  const auto with = [&](const step::ByFactor<double>& factors) {
    step::Conditions scaled = conditions;
    scaled.scale = factors[0];
    scaled.host_scale = factors[1];
    scaled.fixed = scaled.fixed * factors[3];
    return scaled;
  };
  const auto step_at = [&](std::size_t row,
                           const step::ByFactor<double>& factors) -> Result<Seconds> {
    const step::Step step = TRY(predict(job, rows[row], unused, with(factors)));
    return step.time.value;
  };
  const host::Implementation& host = conditions.host;
  const step::FactorFit fit =
      TRY(step::fit_factors(measured,
                            {{step::common_to_plans({conditions.fastest, conditions.slowest}),
                              {host.fastest, host.slowest},
                              {1, 1},
                              step::kFixedTime}},
                            step_at));
  conditions = with(fit.factors);
  step::set_fixed(conditions, conditions.fixed);
  conditions.known = step::Known{fit.after, step::kStepError, {}};
  conditions.provenance = Provenance::kInterpolated;
  return conditions;
}

}  // namespace rehearse::cli
