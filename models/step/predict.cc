#include "models/step/predict.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/step/work.h"
#include "sim/cluster/catalog.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "strategies/job_of_layout.h"
#include "strategies/lay_out.h"

namespace rehearse::step {
namespace {

using workload::Axis;

/// How far off communication is that nothing measured covers, and that something does.
constexpr double kFastestLinks = 0.8, kSlowestLinks = 1.5;
constexpr double kFastestCalibrated = 0.9, kSlowestCalibrated = 1.25;

struct Run {
  job::LoweredJob lowered;
  graph::Timeline timeline;
  Seconds step = Seconds::s(0);
};

Result<Run> run(const graph::Job& job, const cluster::Cluster& cluster,
                const PredictOptions& options) {
  job::Rules rules;
  rules.calibrated = true;
  rules.fidelity =
      options.fidelity == Fidelity::kClosed ? job::Fidelity::kClosed : job::Fidelity::kMessage;
  std::optional<job::LoweredJob> lowered;
  if (!options.unfold && options.fidelity != Fidelity::kSimgrid) {
    Result<std::optional<job::LoweredJob>> folded = job::fold(job, cluster, rules);
    if (!folded) return forward(folded);
    lowered = std::move(*folded);
  }
  if (!lowered) {
    Result<job::LoweredJob> all = job::lower(job, cluster, rules);
    if (!all) return forward(all);
    lowered = std::move(*all);
  }
  Result<graph::Timeline> timeline = options.fidelity == Fidelity::kSimgrid
                                         ? engine::run_on_simgrid(lowered->graph)
                                         : engine::run(lowered->graph);
  if (!timeline) return forward(timeline);
  const Seconds step = timeline->makespan().seconds();
  return Run{std::move(*lowered), std::move(*timeline), step};
}

/// The job with collectives along some axes taking no time, and sends of nothing.
graph::Job with_free(graph::Job job, std::span<const Axis> axes, bool sends) {
  for (graph::Program& program : job.programs)
    for (graph::ProgramOp& op : program.ops) {
      const bool named = std::any_of(axes.begin(), axes.end(), [&](Axis axis) {
        return op.group == static_cast<std::uint32_t>(axis);
      });
      if (op.task == graph::Task::kCollective && named) op.task = graph::Task::kMark;
      if (sends && (op.task == graph::Task::kSend || op.task == graph::Task::kReceive))
        op.bytes = Bytes::b(0);
    }
  return job;
}

bool has_collective(const graph::Job& job, Axis axis) {
  for (const graph::Program& program : job.programs)
    for (const graph::ProgramOp& op : program.ops)
      if (op.task == graph::Task::kCollective && op.group == static_cast<std::uint32_t>(axis))
        return true;
  return false;
}

bool has_sends(const graph::Job& job) {
  for (const graph::Program& program : job.programs)
    for (const graph::ProgramOp& op : program.ops)
      if (op.task == graph::Task::kSend) return true;
  return false;
}

Result<std::string> device_of(const cluster::Cluster& cluster, std::uint32_t ranks) {
  if (ranks > cluster.devices().size())
    return fail(fmt::format("the plan takes {} ranks, and the cluster has {} devices", ranks,
                            cluster.devices().size()),
                "data × tensor × pipeline × context of at most the devices");
  const std::string& model = cluster.devices().front().model;
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (cluster.devices()[r].model != model)
      return fail(fmt::format("ranks on both {} and {}", model, cluster.devices()[r].model),
                  "one kind of device");
  return model;
}

FlopRate peak_of(const cluster::Gpu& gpu, workload::Dtype dtype) {
  using workload::Dtype;
  switch (dtype) {
    case Dtype::kFp8:
      if (gpu.fp8_tensor) return *gpu.fp8_tensor;
      [[fallthrough]];
    case Dtype::kBf16:
      if (gpu.bf16_tensor) return *gpu.bf16_tensor;
      [[fallthrough]];
    case Dtype::kFp16:
      if (gpu.fp16_tensor) return *gpu.fp16_tensor;
      return gpu.fp16.value_or(gpu.fp32);
    case Dtype::kTf32:
      return gpu.tf32_tensor.value_or(gpu.fp32);
    case Dtype::kFp32:
      break;
  }
  return gpu.fp32;
}

/// Errors of compute and of communication are taken as independent.
Estimate<Seconds> interval(Seconds step, Seconds exposed, bool calibrated, const Work& work,
                           const Conditions& conditions, Provenance network) {
  const Seconds rest = step - exposed;
  const double low_links = calibrated ? kFastestCalibrated : kFastestLinks;
  const double high_links = calibrated ? kSlowestCalibrated : kSlowestLinks;
  const double fastest = std::max(conditions.fastest, 0.0), slowest = conditions.slowest;
  const double down = std::hypot(rest.s() * (1 - fastest), exposed.s() * (1 - low_links));
  const double up = std::hypot(rest.s() * (slowest - 1), exposed.s() * (high_links - 1));
  Provenance provenance = std::max({Provenance::kExtrapolated, work.provenance, network});
  return {step, Seconds::s(std::max(0.0, step.s() - down)), Seconds::s(step.s() + up), provenance};
}

/// The runs that differ from the job in one thing.
Status compare(Step& step, const cluster::Cluster& cluster, const PredictOptions& options) {
  struct Change {
    std::string name;
    std::vector<Axis> axes;
    bool sends = false;
  };
  std::vector<Change> changes;
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData})
    if (has_collective(step.job, axis))
      changes.push_back({fmt::format("{}-parallel communication free", to_string(axis)), {axis}});
  if (has_sends(step.job)) changes.push_back({"sends between stages free", {}, true});
  if (changes.size() < 2) return {};  // the run without any communication says it already
  for (const Change& change : changes) {
    const Result<Run> other = run(with_free(step.job, change.axes, change.sends), cluster, options);
    if (!other) return forward(other);
    step.counterfactuals.push_back({change.name, other->step});
  }
  std::stable_sort(
      step.counterfactuals.begin(), step.counterfactuals.end(),
      [](const Counterfactual& a, const Counterfactual& b) { return a.step < b.step; });
  return {};
}

}  // namespace

Estimate<double> Step::samples_per_s() const {
  const double samples = layout.samples_per_step;
  return {samples / time.value.s(), samples / time.high.s(),
          samples / std::max(time.low.s(), 1e-12), time.provenance};
}

double Step::model_utilization() const { return model_flops / (peak * time.value); }

double Step::hardware_utilization() const { return hardware_flops / (peak * time.value); }

Result<Step> predict(const Spec& spec, const cluster::Cluster& cluster,
                     const PredictOptions& options) {
  Result<workload::Layout> layout =
      strategies::lay_out(spec.workload, spec.training, spec.plan);
  if (!layout) return forward(layout);
  const std::uint32_t ranks = layout->ranks();
  const Result<std::string> device = device_of(cluster, ranks);
  if (!device) return forward(device);
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(*device);
  if (!gpu) return forward(gpu);
  Result<compute::OpCost> cost = compute::OpCost::on(*device, spec.conditions.sustained);
  if (!cost) return forward(cost);
  const OpPrice price(std::move(*cost), spec.conditions);
  Result<graph::Job> job = strategies::job_of(*layout, price,
                                              {.host_per_kernel = spec.conditions.host_per_kernel,
                                               .fixed = spec.conditions.fixed});
  if (!job) return forward(job);
  Result<Run> whole = run(*job, cluster, options);
  if (!whole) return forward(whole);

  const Work work = work_of(*layout, price, spec.conditions);
  const double replicas = ranks;
  Step step{.layout = std::move(*layout),
            .job = std::move(*job),
            .lowered = std::move(whole->lowered),
            .timeline = std::move(whole->timeline),
            .time = {whole->step, whole->step, whole->step, Provenance::kExtrapolated},
            .breakdown = {},
            .counterfactuals = {},
            .memory = {},
            .warnings = {}};
  constexpr Axis kAll[] = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData};
  PredictOptions closed = options;
  closed.fidelity = Fidelity::kClosed;
  const Result<Run> free = run(with_free(step.job, kAll, true), cluster, closed);
  if (!free) return forward(free);
  Breakdown& parts = step.breakdown;
  parts = {.compute = work.compute,
           .recompute = work.recompute,
           .optimizer = work.optimizer,
           .launch = work.launch,
           .fixed = spec.conditions.fixed};
  const Seconds least = std::min(free->step, whole->step);
  parts.exposed_communication = whole->step - least;
  const Seconds busy = work.compute + work.recompute + work.optimizer + work.launch + parts.fixed;
  parts.bubble = std::max(Seconds::s(0), least - busy);
  if (options.counterfactuals)
    if (Status ok = compare(step, cluster, options); !ok) return forward(ok);
  const bool calibrated = std::all_of(step.lowered.pricings.begin(), step.lowered.pricings.end(),
                                      [](const job::Pricing& p) { return p.calibrated; });
  step.time = interval(whole->step, parts.exposed_communication, calibrated, work, spec.conditions,
                       spec.conditions.provenance);
  const memory::Device usable = memory::device_of(**gpu);
  step.memory = memory::memory_of(step.layout, usable);
  step.usable_memory = usable.usable;
  if (const memory::StageMemory& most = memory::fullest(step.memory);
      most.fit != memory::Fit::kFits)
    step.warnings.push_back(fmt::format("memory: {} of {} on {}: {}", to_string(most.peak.value),
                                        to_string(usable.usable), *device,
                                        memory::kFitNames[static_cast<int>(most.fit)]));
  step.model_flops = work.model * replicas;
  step.hardware_flops = (work.model + work.recomputed) * replicas;
  step.peak = peak_of(**gpu, spec.training.dtype) * replicas;
  step.share_by_provenance = work.share_by_provenance;
  return step;
}

}  // namespace rehearse::step
