#include "cli/config/job_file.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/calibrate/op_timings.h"
#include "cli/config/job_costs.h"
#include "cli/config/job_input.h"
#include "cli/config/read_plan.h"
#include "cli/config/recorded_workload.h"
#include "models/compute/device_facts.h"
#include "models/workload/read_model.h"
#include "models/workload/selective.h"
#include "profiler/ingest/detect.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/partition.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/lay_out.h"

namespace rehearse::cli {
namespace {

using workload::Implementation;

/// The implementation if the file says nothing. Where the device computes in half precision on
/// matrix units: fused attention and no dropout. Under tensor parallelism: logits that are replaced
/// by their gradients, and gradients accumulated by the products, as in Megatron. Otherwise: the
/// copies that PyTorch makes.
Implementation usual(const strategies::Training& training, const strategies::Plan& plan,
                     const std::vector<const cluster::Gpu*>& gpus) {
  const bool half = training.dtype == workload::Dtype::kFp16 ||
                    training.dtype == workload::Dtype::kBf16 ||
                    training.dtype == workload::Dtype::kFp8;
  const bool fused = half && std::ranges::all_of(gpus, [](const cluster::Gpu* gpu) {
                       return gpu->bf16_tensor.has_value();
                     });
  return {.dtype = training.dtype,
          .attention = fused ? workload::Attention::kFlash : workload::Attention::kUnfused,
          .loss = plan.tensor > 1 ? workload::Loss::kFused : workload::Loss::kEager,
          .fused_accumulation = plan.tensor > 1};
}

/// Of a number format that some devices lack: FP8 is an error, and BF16 is computed as FP16 is, with
/// a note. What is rented is chosen by its formats, so nothing is wrong with the job.
void check_format(const YamlMap& training, workload::Dtype dtype, JobUse use,
                  const std::vector<const cluster::Gpu*>& gpus, std::vector<std::string>& notes) {
  for (const cluster::Gpu* gpu : gpus) {
    if (use != JobUse::kRent && !compute::trains_in(*gpu, dtype))
      training.report("dtype",
                      fmt::format("{} has no matrix units for {}", gpu->name, to_string(dtype)), {},
                      gpu->bf16_tensor ? "bf16" : "fp16");
    if (dtype == workload::Dtype::kBf16 && !gpu->bf16_tensor)
      notes.push_back(fmt::format(
          "{} has no units for bf16: products in bf16 take as long as in fp16 (dtype: fp16)",
          gpu->name));
  }
}

/// The kind of elementwise kernels, which determines their share of the memory rate. Fully sharded
/// jobs without tensor parallelism are assumed to run PyTorch's own kernels.
workload::Elementwise kernels_of(const std::optional<YamlMap>& model, const Implementation& usual,
                                 const std::optional<strategies::Plan>& plan) {
  const std::optional<std::size_t> given =
      model ? model->choice("elementwise", workload::kElementwiseNames) : std::nullopt;
  if (given) return static_cast<workload::Elementwise>(*given);
  const bool pytorch = plan && plan->zero == 3 && plan->tensor == 1;
  return pytorch ? workload::Elementwise::kUnfused : usual.elementwise;
}

/// The assumed implementation of a model: the keys that the file does not give. `kernels` may be
/// slower ones for the same operations.
std::vector<std::string> assumed_of(const YamlMap& map, const Implementation& how,
                                    workload::Elementwise kernels, bool mixture,
                                    bool convolutions) {
  std::string text;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!map.has(key)) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  };
  add("attention", workload::kAttentionNames[static_cast<int>(how.attention)]);
  const std::string_view elementwise =
      workload::kElementwiseNames[static_cast<int>(how.elementwise)];
  add("elementwise", kernels == how.elementwise
                         ? std::string(elementwise)
                         : fmt::format("{} (at the memory rate of {} kernels)", elementwise,
                                       workload::kElementwiseNames[static_cast<int>(kernels)]));
  add("loss", workload::kLossNames[static_cast<int>(how.loss)]);
  add("fused_accumulation", how.fused_accumulation ? "true" : "false");
  add("dropout", how.dropout ? "true" : "false");
  if (convolutions) add("channels_last", how.channels_last ? "true" : "false");
  if (mixture) add("fused_experts", how.fused_experts ? "true" : "false");
  if (text.empty()) return {};
  return {text};
}

/// Describes the settings of the training that come from the recording and not from the file.
std::vector<std::string> recorded_as(const YamlMap& map, const RecordedWorkload& recorded,
                                     const strategies::Training& training) {
  std::vector<std::string> lines;
  if (!recorded.batch)
    lines.push_back(fmt::format("a recorded microbatch of {:g}", training.microbatch));
  else if (!map.has("microbatch"))
    lines.push_back(fmt::format("microbatch {:g}, as recorded", training.microbatch));
  if (!map.has("dtype"))
    lines.push_back(fmt::format("dtype {}{}", to_string(training.dtype),
                                recorded.dtype ? ", as recorded" : ""));
  return lines;
}

/// Of the kind whose published steps tell the interval of computing: models of tokens in half
/// precision.
bool is_usual(const workload::Workload& workload, workload::Dtype dtype) {
  return workload.tokens_per_sample > 0 &&
         (dtype == workload::Dtype::kBf16 || dtype == workload::Dtype::kFp16);
}

/// The conditions on each kind of device of the cluster. Values of a file apply to all of them.
struct ConditionsOf {
  ConditionsOf(const std::vector<const cluster::Gpu*>& kinds, workload::Elementwise elementwise)
      : gpus(kinds), all(std::max<std::size_t>(1, kinds.size())) {
    for (std::size_t k = 0; k < gpus.size(); ++k)
      all[k] = step::conditions_for(*gpus[k], elementwise);
  }
  std::map<std::string, step::Conditions, std::less<>> of_further() const {
    std::map<std::string, step::Conditions, std::less<>> named;
    for (std::size_t k = 1; k < gpus.size(); ++k) named.emplace(gpus[k]->name, all[k]);
    return named;
  }
  std::vector<const cluster::Gpu*> gpus;
  std::vector<step::Conditions> all;  // by kind; one where there is none
};

/// `epoch`: the samples of an epoch of the job's input. The target's own value replaces it.
std::optional<Target> read_target(const YamlMap& map, std::optional<double>& epoch) {
  Target target;
  int given = 0;
  const auto read = [&](std::string_view key, std::optional<double>& value) {
    value = map.optional<double>(key);
    if (!value) return;
    ++given;
    if (!(std::isfinite(*value) && *value > 0))
      map.report(key, fmt::format("{:g} is out of range", *value), "a number above zero");
  };
  read("tokens", target.tokens);
  read("samples", target.samples);
  read("steps", target.steps);
  read("epochs", target.epochs);
  if (const std::optional<double> each = map.optional<double>("samples_per_epoch")) {
    if (!(std::isfinite(*each) && *each > 0))
      map.report("samples_per_epoch", fmt::format("{:g} is out of range", *each),
                 "a number above zero");
    epoch = each;
  }
  if (target.epochs && !epoch)
    map.report("samples_per_epoch", "is missing", "a number, or `samples` in the job's input");
  if (target.epochs) target.samples = *target.epochs * epoch.value_or(0);
  map.no_other_keys();
  if (given != 1)
    map.report("tokens", "exactly one amount is required", "tokens, samples, epochs or steps");
  return target;
}

/// A calibration file takes precedence over the calibrations of the program. Its path is relative
/// to the folder of the job.
Status read_calibration(const std::filesystem::path& path, ConditionsOf& conditions) {
  YamlFile file = TRY(YamlFile::load(path));
  const YamlMap root = file.root();
  if (const std::optional<YamlMap> map = root.map("sustained"))
    step::read_conditions(*map, conditions.all);
  else if (!root.has("sustained"))
    root.report("sustained", "is missing", "a file written by `rehearse calibrate job`");
  root.map("measured");
  root.no_other_keys();
  TRY(file.status());
  for (step::Conditions& each : conditions.all) {
    each.provenance = Provenance::kInterpolated;
    step::set_fixed(each, each.fixed);
    each.source = fmt::format("calibrated: {}", path.filename().string());
  }
  return {};
}

/// The kinds of GPUs of the cluster that the catalog has, in the order of their first device.
std::vector<const cluster::Gpu*> gpus_of(const std::optional<cluster::Cluster>& cluster) {
  std::vector<const cluster::Gpu*> gpus;
  std::string_view last;
  for (std::size_t d = 0; cluster && d < cluster->devices().size(); ++d) {
    const std::string& model = cluster->devices()[d].model;
    if (std::exchange(last, model) == model) continue;
    const Result<const cluster::Gpu*> gpu = cluster::find_gpu(model);
    if (gpu && std::ranges::find(gpus, *gpu) == gpus.end()) gpus.push_back(*gpu);
  }
  return gpus;
}

/// Times of single operations, from the folder of the recording and from the file that the job
/// names.
Result<MeasuredByDevice> read_measured_ops(const YamlMap& root, const std::filesystem::path& folder,
                                           const std::optional<RecordedWorkload>& recorded,
                                           std::vector<std::string>& notes) {
  std::vector<trace::OpTiming> timings;
  if (recorded) timings = recorded->timings;
  if (const auto file = root.optional<std::string>("op_costs")) {
    std::vector<trace::OpTiming> read = TRY(read_op_costs(TRY(named_file(folder, *file))));
    trace::merge(timings, std::move(read));
  }
  MeasuredByDevice measured = measured_ops_of(timings, notes);
  if (!recorded) return measured;
  const auto device = measured.find(recorded->device);
  if (device == measured.end()) return measured;
  const compute::MeasuredOps::Learnt learnt = device->second.learn(recorded->workload);
  if (learnt.both > 0)
    notes.push_back(
        fmt::format("op costs: {} of the recording were also measured alone; other ops use the "
                    "ratio between the two",
                    counted(learnt.both, "operation")));
  for (const workload::OpKind kind : learnt.unlike)
    notes.push_back(
        fmt::format("op costs: {} differ from the same op of the recording by more than a factor "
                    "of 3: left out",
                    workload::to_string(kind)));
  return measured;
}

/// A cluster of one instance of that profile.
Result<cluster::Cluster> one_slice(const std::string& device, std::string_view profile) {
  const std::string name = fmt::format("{}:{}", device, profile);
  TRY(cluster::find_gpu(name));
  return cluster::parse_cluster(
      fmt::format("cluster: {{device: \"{}\", devices_per_node: 1, nodes: 1}}", name), name);
}

/// Without shapes, recorded work cannot be divided.
void keep_as_recorded(strategies::Axes& axes, const strategies::Training& training) {
  if (axes.tensor.empty()) axes.tensor = {1};
  if (axes.context.empty()) axes.context = {1};
  if (axes.microbatch.empty()) axes.microbatch = {training.microbatch};
}

/// The share of the price of the cluster that one slice of one device takes away from others: the
/// larger of its shares of compute slices and memory slices.
Status price_of_slice(const cluster::Cluster& whole, std::string_view slice, cost::Place& place,
                      std::vector<std::string>& notes) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(whole.devices().front().model));
  const cluster::MigDevice device = TRY(cluster::mig_device(gpu));
  const std::uint32_t index = TRY(cluster::find_profile(device, slice));
  const cluster::MigProfile& profile = device.profile(index);
  const double share = std::max(static_cast<double>(profile.compute_slices) / device.compute_slices,
                                static_cast<double>(profile.memory_slices) / device.positions);
  const std::size_t devices = whole.devices().size();
  for (cost::Rented& rented : place.rented) {
    notes.push_back(
        fmt::format("price: {:.3g} of one of the {} GPUs of {:g} × {}, the part that other jobs "
                    "cannot use; the whole instance is billed",
                    share, devices, rented.count, rented.instance));
    rented.count *= share / static_cast<double>(devices);
  }
  return {};
}

}  // namespace

namespace {

/// All sections but `cluster`; nothing where that is wrong.
Result<JobFile> read_sections(const YamlMap& root, const std::filesystem::path& folder,
                              std::optional<cluster::Cluster> cluster, cost::Place place,
                              JobUse use) {
  const auto section = [&](std::string_view key, std::string_view expected) {
    std::optional<YamlMap> map = root.map(key);
    if (!map && !root.has(key)) root.report(key, "is missing", std::string(expected));
    return map;
  };
  const std::vector<const cluster::Gpu*> gpus = gpus_of(cluster);

  const std::optional<YamlMap> model = section("workload", "workload: {model: …}");
  std::optional<RecordedWorkload> recorded;
  if (model && model->has("recording")) {
    RecordedWorkload read = TRY(read_recording(*model, folder));
    model->no_other_keys();
    recorded = std::move(read);
  }
  const strategies::Training usual_training =
      recorded ? recorded_training(*recorded) : strategies::Training{};
  std::optional<strategies::Training> training;
  if (const auto map = section("training", "training: {global_batch: …, microbatch: …}"))
    training = read_training(*map, usual_training);
  const bool has_plan = root.has("plan");
  std::optional<strategies::Plan> plan = strategies::Plan{};
  if (const auto map = root.map("plan")) plan = read_plan(*map);

  strategies::Axes axes;
  if (training && plan) keep_given(root, {*training, *plan}, axes);
  if (cluster && cluster->nodes().size() > 1)
    for (const cluster::Node& node : cluster->nodes())
      axes.ranks_per_node =
          std::max(axes.ranks_per_node, static_cast<std::uint32_t>(node.devices.size()));
  std::optional<strategies::Plan> assumed_plan = plan;
  if (use != JobUse::kOnePlan && plan && plan->stages.empty() && axes.tensor.empty())
    assumed_plan->tensor = 2;  // as any with tensor parallelism
  const Implementation implementation = usual(training.value_or(strategies::Training{}),
                                              assumed_plan.value_or(strategies::Plan{}), gpus);
  std::optional<workload::Workload> workload;
  std::string measured_on;
  std::vector<std::string> assumed;
  const workload::Elementwise kernels = kernels_of(model, implementation, assumed_plan);
  ConditionsOf conditions(gpus, kernels);
  std::vector<std::string> notes;
  if (training) check_format(*root.map("training"), training->dtype, use, gpus, notes);
  comm::LinkScales scales;
  MeasuredByDevice measured_ops = TRY(read_measured_ops(root, folder, recorded, notes));
  if (recorded && cluster && training && plan) {
    if (use != JobUse::kOnePlan && !recorded->shapes) keep_as_recorded(axes, *training);
    TRY(check_shapes(*recorded, *training, *plan));
    assumed = recorded_as(*root.map("training"), *recorded, *training);
    std::vector<std::string> devices;
    devices.reserve(gpus.size());
    for (const cluster::Gpu* gpu : gpus) devices.push_back(gpu->name);
    if (devices.empty()) devices.push_back(cluster->devices().front().model);
    measured_on = recorded->device.empty() ? devices.front() : recorded->device;
    scales = scales_of(recorded->collectives, measured_on, *cluster, notes);
    workload =
        TRY(place_recording(std::move(*recorded), devices, *training, conditions.all, notes));
  } else if (model && !recorded) {
    workload = workload::read_model(*model, implementation, folder);
    const bool mixture = workload && workload->experts_per_token > 0;
    if (mixture)
      for (step::Conditions& each : conditions.all)
        each.scale = step::mixture_scale(
            model->optional<bool>("fused_experts").value_or(implementation.fused_experts));
    const bool convolutions = workload && workload::has_convolutions(*workload);
    if (convolutions)
      for (step::Conditions& each : conditions.all) step::take_plain_loop(each);
    if (workload && training && (mixture || !is_usual(*workload, training->dtype)))
      for (step::Conditions& each : conditions.all) step::widen_kernels(each);
    const std::optional<std::size_t> saved = model->choice("saved", workload::kSavedNames);
    if (workload && saved && training && training->recompute == strategies::Recompute::kSelective)
      workload::save_selectively(*workload, static_cast<workload::Saved>(*saved));
    const std::vector<std::string> again = model->list<std::string>("recompute_ops");
    if (workload) workload::run_again(*workload, again);
    model->no_other_keys();
    assumed = assumed_of(*model, implementation, kernels, mixture, convolutions);
  }
  if (workload && training && training->lora_rank > 0) {
    Result<workload::Workload> adapted =
        workload::with_adapters(std::move(*workload), training->lora_rank, training->lora_targets,
                                training->frozen_weights);
    workload.reset();
    if (adapted)
      workload = std::move(*adapted);
    else
      root.map("training")
          ->report("lora_rank", adapted.error().diagnostics.front().problem,
                   adapted.error().diagnostics.front().expected);
  }

  if (const auto calibration = root.optional<std::string>("calibration"))
    TRY(read_calibration(TRY(named_file(folder, *calibration)), conditions));
  if (const auto map = root.map("sustained")) step::read_conditions(*map, conditions.all);
  // What measured steps say of the network, in a calibration or in the file, goes first.
  if (const double network = conditions.all.front().network_scale; network != 1)
    scales.between = network;
  if (cluster && scales != comm::LinkScales{}) *cluster = comm::with_slower_links(*cluster, scales);

  std::optional<input::Pipeline> input = TRY(read_job_input(root, folder));
  if (input) input = on_hosts_of(place, std::move(*input));
  std::optional<Target> target;
  std::optional<double> epoch;
  if (input && input->samples) epoch = static_cast<double>(*input->samples);
  if (const auto map = root.map("target")) {
    target = read_target(*map, epoch);
    if (target && target->tokens && workload && workload->tokens_per_sample == 0)
      map->report("tokens", "samples of this workload have no tokens", "samples or steps");
  }
  JobCosts costs = TRY(read_job_costs(root, folder));
  place.hours = std::move(costs.hours);
  if (costs.rent.regions.size() == 1) place.region = costs.rent.regions.front();
  if (costs.rent.markets.size() == 1) place.market = costs.rent.markets.front();
  if (use != JobUse::kRent) {
    constexpr const char* kOne = "one; several are for `rehearse recommend`";
    if (costs.rent.regions.size() > 1) root.report("region", "several regions", kOne);
    if (costs.rent.markets.size() > 1) root.report("market", "several markets", kOne);
  }
  root.no_other_keys();
  TRY(root.status());

  JobFile job{.name = workload->name,
              .spec = {.workload = std::move(*workload),
                       .measured_on = std::move(measured_on),
                       .training = *training,
                       .plan = *plan,
                       .conditions = conditions.all.front(),
                       .measured_ops = std::move(measured_ops),
                       .conditions_on = conditions.of_further()},
              .has_plan = has_plan,
              .axes = std::move(axes),
              .cluster = std::move(*cluster),
              .place = std::move(place),
              .rent = std::move(costs.rent),
              .keeping = costs.keeping,
              .input = std::move(input),
              .target = target,
              .epoch = epoch,
              .assumed = std::move(assumed),
              .notes = std::move(notes)};
  return job;
}

}  // namespace

Result<JobFile> read_job(const YamlMap& root, const std::filesystem::path& folder,
                         const std::filesystem::path& cluster_file, std::string_view slice,
                         JobUse use) {
  std::optional<cluster::Cluster> cluster;
  if (cluster_file.empty()) {
    cluster = cluster::read_cluster(root);
  } else {
    root.map("cluster");  // known, and overruled
    cluster = TRY(cluster::load_cluster(cluster_file));
  }
  if (!cluster || slice.empty())
    return read_sections(root, folder, std::move(cluster), place_of(root), use);
  cluster::Cluster one = TRY(one_slice(cluster->devices().front().model, slice));
  JobFile job = TRY(read_sections(root, folder, std::move(one), place_of(root), use));
  if (const std::uint32_t ranks = strategies::ranks_of(job.spec.plan); ranks > 1)
    return fail(Diagnostic{.key = "plan",
                           .problem = fmt::format("{} ranks on slices, which cannot reach each "
                                                  "other: MIG has no peer access over NVLink or "
                                                  "PCIe, and NCCL does not run between instances",
                                                  ranks),
                           .expected = "one rank"});
  TRY(price_of_slice(*cluster, slice, job.place, job.notes));
  return job;
}

Result<JobFile> read_job_on(const YamlMap& root, const std::filesystem::path& folder,
                            cluster::Cluster cluster, cost::Rented rented) {
  root.map("cluster");  // known, and overruled
  return read_sections(root, folder, std::move(cluster), {.rented = {std::move(rented)}},
                       JobUse::kRent);
}

/// Fails for a recording, which has none of the keys of a job.
Status check_no_recording(const std::filesystem::path& path) {
  if (held_file(path) != nullptr || !ingest::detect_input(path)) return {};
  return fail_in(path, "is a recording, not a job file",
                 "rehearse replay and whatif read recordings");
}

Result<JobFile> load_job(const std::filesystem::path& path,
                         const std::filesystem::path& cluster_file, std::string_view slice,
                         JobUse use) {
  TRY(check_no_recording(path));
  YamlFile file = TRY(YamlFile::load(path));
  return in_file(path, read_job(file.root(), path.parent_path(), cluster_file, slice, use));
}

bool is_job_file(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  return file && file->root().has("workload");
}

namespace {

/// The key of the field that a problem of a plan begins with: plan.zero of "zero 1 with …".
std::string key_said(const YamlMap& root, const std::string& problem) {
  const std::string word = problem.substr(0, problem.find(' '));
  for (const char* section : {"plan", "training"})
    if (root.is_map(section) && root.map(section)->has(word))
      return fmt::format("{}.{}", section, word);
  return {};
}

}  // namespace

tl::unexpected<Error> wrong_in(const std::filesystem::path& path, Error error) {
  for (Diagnostic& d : error.diagnostics) {
    if (!d.file.empty()) continue;
    d.file = path.string();
    const Result<YamlFile> file = YamlFile::load(path);
    if (!file) continue;
    std::optional<YamlMap> map = file->root();
    const std::string said = d.key.empty() ? key_said(*map, d.problem) : d.key;
    std::string_view key = said;
    for (std::size_t dot; map && (dot = key.find('.')) != key.npos; key.remove_prefix(dot + 1))
      map = map->is_map(key.substr(0, dot)) ? map->map(key.substr(0, dot)) : std::nullopt;
    if (!map || !map->has(key)) continue;
    map->report(key, "");
    const Diagnostic place = file->status().error().diagnostics.front();
    d.line = place.line;
    d.column = place.column;
  }
  return tl::unexpected(std::move(error));
}

}  // namespace rehearse::cli
