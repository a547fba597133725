#include "cli/recommending/evaluate.h"

#include <algorithm>

#include <fmt/core.h>
#include <malloc.h>

#include "cli/config/job_account.h"
#include "cli/config/job_input.h"
#include "cli/globals.h"
#include "cli/planning/find_plans.h"
#include "cli/planning/plan_words.h"
#include "cli/recommending/stalls.h"
#include "models/compute/device_facts.h"
#include "sim/base/file.h"
#include "sim/cluster/instance_shape.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"
#include "strategies/step/devices.h"

namespace rehearse::cli {
namespace {

/// Algorithms for convolutions need fewer operations than the model has. Winograd's (3 × 3 kernels)
/// needs 2.25 times fewer for 2 × 2 outputs, and 4 times fewer for 4 × 4 outputs.
constexpr double kConvolutionSaving = 4;
/// All devices together hold at least one weight of 16 bits for each parameter.
constexpr double kLeastBytesPerParameter = 2;
/// A second look runs as many plans as `plan` shows.
constexpr std::size_t kSecondLook = 10;
/// A checkpoint has the weights in fp32, and the optimizer's states.
constexpr double kWeightBytes = 4;

/// Hundreds of offers are compared, so only the axes that matter most are searched, in addition to
/// those that the file gives. Interleaving, other schedules, context parallelism, and weights or
/// activations in host memory are left to `plan`, on the instance that was chosen.
strategies::Axes axes_of(strategies::Axes axes) {
  const auto otherwise = [](auto& axis, auto values) {
    if (axis.empty()) axis = values;
  };
  otherwise(axes.context, std::vector<std::uint32_t>{1});
  otherwise(axes.interleave, std::vector<std::uint32_t>{1});
  otherwise(axes.schedule, std::vector{strategies::Schedule::k1f1b});
  otherwise(axes.zero, std::vector<std::uint32_t>{0, 1, 3});
  otherwise(axes.offload, std::vector{strategies::Offload::kNone, strategies::Offload::kOptimizer});
  otherwise(axes.placement, std::vector{strategies::Placement::kTensorDataPipeline});
  for (auto* algorithms :
       {&axes.all_reduce, &axes.all_gather, &axes.reduce_scatter, &axes.all_to_all})
    otherwise(*algorithms, std::vector<std::optional<Algorithm>>{std::nullopt});
  return axes;
}

constexpr double bytes_per_parameter(strategies::Optimizer optimizer) {
  switch (optimizer) {
    case strategies::Optimizer::kAdam: return kWeightBytes + 8;
    case strategies::Optimizer::kMomentum: return kWeightBytes + 4;
    case strategies::Optimizer::kSgd: break;
  }
  return kWeightBytes;
}

/// The best plan by closed forms.
PlanRequest request_of(const JobFile& job) {
  return {.axes = axes_of(job.axes),
          .keep = 1,
          .timelines = false,
          .look_beyond = false,
          .front = false,
          .phase = [](const char*) -> Progress {  // the offers' own is drawn
            return [](double) { return !interrupted.load(); };
          }};
}

Result<cluster::Cluster> cluster_of(const std::string& instance, std::uint32_t count) {
  return cluster::parse_cluster(
      fmt::format("cluster: {{instance: \"{}\", count: {}}}", instance, count), instance);
}
Result<cluster::Cluster> cluster_of(const cost::Offer& offer) {
  return cluster_of(offer.instance->name, offer.count);
}

/// Each run frees hundreds of megabytes in pieces. `malloc` would keep them, although few of the next
/// run's fit into them.
void return_memory() { ::malloc_trim(0); }

/// The properties of an offer that determine its best plan and its step, without the name of the
/// instance.
Result<std::string> key_of(const cost::Offer& offer) {
  const cluster::InstanceShape shape = TRY(cluster::shape_of_instance(offer.instance->name));
  if (offer.count > 1 && !shape.nic)
    return fail(
        fmt::format("the network between instances of {} is not known", offer.instance->name),
        "one instance, or an instance type whose network the catalog has");
  return fmt::format("{} {} {} {} {} {} × {}", shape.device, shape.devices,
                     shape.joined ? static_cast<int>(*shape.joined) : -1, shape.nics,
                     shape.nic ? shape.nic->name : "",
                     shape.nic ? shape.nic->rate.bytes_per_s() : 0, offer.count);
}

}  // namespace

Result<JobOnOffers> JobOnOffers::load(const std::filesystem::path& path,
                                      std::optional<Target> target, const cost::Offer& first) {
  std::string text = TRY(read_file(path));
  const YamlFile file = TRY(YamlFile::parse(text, path.string()));
  cluster::Cluster cluster = TRY(cluster_of(first));
  JobFile job = TRY(read_job_on(file.root(), path.parent_path(), std::move(cluster),
                                {first.instance->name, static_cast<double>(first.count)}));
  if (target) job.target = target;
  if (!job.target)
    return fail("the amount of training is not given",
                "--target '300e9 tokens', or target: {tokens: 300e9} in the job file");
  if (job.target->epochs && !job.target->samples) {
    if (!job.epoch)
      return fail(
          "--target: the number of samples per epoch is not given",
          "samples, such as --target '90e6 samples', or target: {samples_per_epoch: 1281167} in "
          "the job file, or `samples` in the file that its `input` names");
    job.target->samples = *job.target->epochs * *job.epoch;
  }
  if (job.target->tokens && job.spec.workload.tokens_per_sample == 0)
    return fail("--target: samples of this workload have no tokens", "samples or steps");
  std::optional<input::Pipeline> input = TRY(read_job_input(file.root(), path.parent_path()));
  return JobOnOffers(path, std::move(text), std::move(job), std::move(input));
}

Result<step::Step> JobOnOffers::run(const cost::Option& option) const {
  const cluster::Cluster cluster = TRY(cluster_of(option.instance, option.count));
  const Found& found = kept_->found[option.evaluation->detail];
  return step::predict(
      found.spec, cluster,
      {.fidelity = found.fidelity, .unfold = found.all_ranks, .counterfactuals = false});
}

cost::Evaluator JobOnOffers::evaluator(const SpreadOf& spread) const {
  const auto evaluate_by = [this, spread](Look look) {
    return [this, spread, look](const cost::Offer& offer) { return evaluate(offer, look, spread); };
  };
  return {.least_time = [this](const cost::Offer& offer) { return least_time(offer); },
          .least_time_by_plans =
              [this, spread](const cost::Offer& offer) { return least_by_plans(offer, spread); },
          .evaluate = evaluate_by(Look::kFirst),
          .look_again = evaluate_by(Look::kSecond)};
}

double JobOnOffers::samples() const {
  const Target& target = *job_.target;
  if (target.steps) return *target.steps * job_.spec.training.global_batch;
  if (target.samples) return *target.samples;
  return *target.tokens / job_.spec.workload.tokens_per_sample;
}

std::optional<Seconds> JobOnOffers::least_time(const cost::Offer& offer) const {
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(offer.instance->gpu);
  if (!gpu || !compute::trains_in(**gpu, job_.spec.training.dtype)) return std::nullopt;
  const double devices = offer.instance->gpu_count * offer.count;
  const workload::Workload& workload = job_.spec.workload;
  if (Bytes::b(workload.parameters() * kLeastBytesPerParameter) > (*gpu)->memory * devices)
    return std::nullopt;
  const compute::DeviceFacts facts = compute::facts_of(**gpu);
  const FlopRate peak = peak_of(facts, job_.spec.training.dtype);
  const double saving = workload::has_convolutions(workload) ? kConvolutionSaving : 1;
  return workload.model_flops() * samples() / (peak * (devices * saving));
}

Seconds JobOnOffers::least_by_plans(const cost::Offer& offer, const SpreadOf& spread) const {
  const Result<std::string> key = key_of(offer);
  if (!key) return Seconds::s(0);  // its evaluation says why
  const auto bound = [&]() -> Result<Seconds> {
    const cluster::Cluster cluster = TRY(cluster_of(offer));
    const JobFile job = TRY(job_on(offer, cluster));
    PlanRequest request = request_of(job);
    request.spread = spread("least on " + *key);
    const FoundPlans plans = TRY(find_plans(job.spec, cluster, request));
    // The graph of a plan runs as long as its closed form, except for what overlaps.
    return Seconds::s(of(plans.best.front().figures, strategies::Figure::kStepTime)) /
           (1 + job.spec.conditions.overlap_penalty);
  };
  const Result<Seconds>& step = kept_->least.of(*key, bound);
  return step ? *step * (samples() / job_.spec.training.global_batch) : Seconds::s(0);
}

Result<JobFile> JobOnOffers::job_on(const cost::Offer& offer,
                                    const cluster::Cluster& cluster) const {
  const YamlFile file = TRY(YamlFile::parse(text_, path_.string()));
  return read_job_on(file.root(), path_.parent_path(), cluster,
                     {offer.instance->name, static_cast<double>(offer.count)});
}

JobOnOffers::Plan JobOnOffers::find_plan(const cost::Offer& offer, Look look,
                                         strategies::Spread spread) const {
  cluster::Cluster cluster = TRY(cluster_of(offer));
  const JobFile job = TRY(job_on(offer, cluster));
  const step::Fidelity fidelity =
      look == Look::kSecond ? step::Fidelity::kMessage : step::Fidelity::kClosed;
  PlanRequest request = request_of(job);
  request.most_runs = kSecondLook;
  request.confirm = fidelity;
  request.spread = std::move(spread);
  FoundPlans plans = TRY(find_plans(job.spec, cluster, request));
  return_memory();
  step::Step& step = *plans.best.front().step;
  step::Spec spec = spec_of(job.spec, plans.best.front());
  cost::Stalls stalls = TRY(stalls_of(spec, cluster, step, fidelity));
  if (offer.instance->gpu_count > 1 && step.layout.ranks() > 1)
    stalls.node_sharing = TRY(node_sharing(spec, cluster, job.place.rented, step, fidelity));
  return_memory();
  const double steps = *steps_to(job_.target, step.layout);
  const bool all_ranks = plans.best.front().times.all_ranks.has_value();
  const std::lock_guard lock(kept_->mutex);
  kept_->found.push_back({std::move(spec), step.layout.samples_per_step,
                          memory::fullest(step.memory), fidelity, all_ranks});
  return std::make_shared<const Planned>(Planned{std::move(step), stalls, &kept_->found.back().spec,
                                                 kept_->found.size() - 1, steps, all_ranks});
}

Result<cost::Evaluation> JobOnOffers::evaluate(const cost::Offer& offer, Look look,
                                               const SpreadOf& spread) const {
  std::string key = TRY(key_of(offer));
  if (look == Look::kSecond) key += " again";
  std::optional<input::Pipeline> input = input_;
  if (input) input = on_hosts_of({.rented = {{offer.instance->name, 1.0}}}, std::move(*input));
  const std::uint32_t cores = input && input->host ? input->host->cores : 0;
  const auto run = [&]() -> Result<cost::Evaluation> {
    const Plan& plan = kept_->plans.of(key, [&] { return find_plan(offer, look, spread(key)); });
    if (!plan) return forward(plan);
    const cluster::Cluster cluster = TRY(cluster_of(offer));
    step::Step step = (*plan)->step;
    cost::Stalls stalls = (*plan)->stalls;
    Usd requests = Usd::usd(0);
    if (input) {
      const Fed& fed = kept_->feeds.of(cores, [&] {
        return Fed{input::Feed(*input), input::Feed(input::with_free_storage(*input))};
      });
      TRY(feed(fed.feed, cluster, step));
      TRY(add_input_stalls(fed.with_free_storage, cluster, step, stalls));
      requests = requests_of_step(step.layout, cluster, *input);
    }
    const step::Spec& of_plan = *(*plan)->spec;
    return cost::Evaluation{.job = {step.time, (*plan)->steps,
                                    Bytes::b(of_plan.workload.trained_parameters() *
                                             bytes_per_parameter(of_plan.training.optimizer)),
                                    requests},
                            .plan = plan_words(of_plan.training, of_plan.plan),
                            .devices = devices_of(cluster, step),
                            .stalls = stalls,
                            .detail = (*plan)->detail,
                            .all_ranks = (*plan)->all_ranks};
  };
  return kept_->evaluations.of(fmt::format("{} on {}", key, cores), run);
}

std::optional<cost::FunctionJob> JobOnOffers::for_functions() const {
  const workload::Workload& workload = job_.spec.workload;
  step::Spec one = job_.spec;
  one.training.global_batch = one.training.microbatch = 1;
  one.training.dtype = workload::Dtype::kFp32;
  one.plan = {};
  const Result<workload::Layout> layout = strategies::lay_out(one.workload, one.training, one.plan);
  if (!layout || workload.model_flops().flop() == 0) return std::nullopt;
  const Result<std::vector<memory::StageMemory>> memory = step::memory_on(*layout, job_.cluster);
  if (!memory) return std::nullopt;
  const memory::Parts& parts = memory::fullest(*memory).parts;
  const double batch = job_.spec.training.global_batch;
  return cost::FunctionJob{.step = workload.model_flops() * batch,
                           .samples = static_cast<std::uint32_t>(std::clamp(batch, 1.0, 1e9)),
                           .parameters = Bytes::b(workload.parameters() * kWeightBytes),
                           .memory = parts.total() - parts.context - parts.reserve,
                           .steps = samples() / batch};
}

}  // namespace rehearse::cli
