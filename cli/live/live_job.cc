#include "cli/live/live_job.h"

#include <fmt/core.h>

#include "cli/commands/predicted_job.h"
#include "cli/commands/run_answer.h"
#include "cli/commands/step_result.h"
#include "cli/config/described_job.h"
#include "cli/config/fidelity_names.h"
#include "cli/config/job_file.h"
#include "cli/config/serve_file.h"
#include "models/compute/calibration.h"
#include "sim/base/file.h"
#include "sim/base/yaml.h"
#include "sim/base/yaml_edit.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/partition.h"
#include "strategies/lay_out.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate, strategies::Field, strategies::Section;

constexpr std::string_view kSlice = "slice", kFill = "all_gpus", kData = "plan.data",
                           kLink = "cluster.inter_node.link", kNics = "cluster.inter_node.links";
constexpr std::int64_t kMostDevices = 131'072;
constexpr strategies::ValueRange kDevices = {1, kMostDevices}, kLinks = {1, 64},
                                 kTokens = {1, 1'048'576};

std::string path_of(const Field<Candidate>& field) {
  std::string path = field.at.section == Section::kTraining ? "training" : "plan";
  for (const auto& [section, key] : strategies::kMappingsOfPlan)
    if (field.at.section == section) path += fmt::format(".{}", key);
  return fmt::format("{}.{}", path, field.name);
}

/// The section `cluster` of a job, where a device or an instance with a number of them gives it.
struct GivenCluster {
  std::string device;  ///< or the instance
  bool instance = false;
  std::int64_t nodes = 1, devices_per_node = 1, links = 0;
  std::string link = {}, kind = {};
  std::uint64_t devices() const { return static_cast<std::uint64_t>(nodes * devices_per_node); }
};

std::optional<GivenCluster> given_cluster(const YamlMap& root) {
  if (!root.is_map("cluster")) return std::nullopt;
  const YamlMap map = *root.map("cluster");
  if (map.has("vertices") || map.is_list("nodes")) return std::nullopt;
  GivenCluster given;
  // The reader of the job refuses what is out of range; products of these must not overflow.
  const auto count = [&](const char* key) {
    return std::clamp<std::int64_t>(map.optional<std::int64_t>(key).value_or(1), 0, kMostDevices);
  };
  given.instance = map.has("instance");
  given.device = map.optional<std::string>(given.instance ? "instance" : "device").value_or("");
  given.nodes = count(given.instance ? "count" : "nodes");
  given.devices_per_node = count("devices_per_node");
  if (given.instance)
    if (const auto found = cluster::find_instance(given.device))
      given.devices_per_node = static_cast<std::int64_t>((*found)->gpu_count);
  if (map.is_map("inter_node")) {
    const YamlMap network = *map.map("inter_node");
    given.link = network.optional<std::string>("link").value_or("");
    given.links = network.optional<std::int64_t>("links").value_or(0);
  } else {
    given.kind = map.optional<std::string>("inter_node").value_or("");
  }
  return given;
}

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.push_back(each.name);
  return names;
}

void add_cluster(const GivenCluster& given, std::vector<Control>& controls) {
  const auto add = [&](std::string_view key, std::string label, std::string meaning,
                       std::string_view kind, std::vector<std::string> names,
                       strategies::ValueRange range, std::string value) {
    controls.push_back({.key = fmt::format("cluster.{}", key),
                        .label = std::move(label),
                        .group = "cluster",
                        .meaning = std::move(meaning),
                        .kind = kind,
                        .names = std::move(names),
                        .range = range,
                        .value = std::move(value)});
  };
  const auto add_name = [&](std::string_view key, const char* label, const char* meaning,
                            std::vector<std::string> names, const std::string& value) {
    add(key, label, meaning, "name", std::move(names), {}, value);
  };
  const auto add_count = [&](std::string_view key, const char* label, const char* meaning,
                             strategies::ValueRange range, std::int64_t value) {
    add(key, label, meaning, "count", {}, range, value > 0 ? std::to_string(value) : "");
  };
  if (given.instance) {
    add_name("instance", "instance", "an instance of the catalog", names_of(cluster::instances()),
             given.device);
    add_count("count", "instances", "number of instances", kDevices, given.nodes);
  } else {
    add_name("device", "GPU", "a GPU of the catalog", names_of(cluster::gpus()), given.device);
    add_count("nodes", "nodes", "number of nodes", kDevices, given.nodes);
    add_count("devices_per_node", "GPUs per node", "number of GPUs in a node", kDevices,
              given.devices_per_node);
  }
  std::vector<std::string> links;
  for (const cluster::LinkSpec& link : cluster::links())
    if (link.kind == cluster::LinkKind::kInterNode) links.push_back(link.name);
  add_name("inter_node.link", "network",
           "a link of the catalog between nodes, instead of the rate and latency of the file",
           std::move(links), given.link);
  add_count("inter_node.links", "NICs per node", "number of network cards in a node", kLinks,
            given.links);
}

std::vector<std::string> slices_of(const std::string& device) {
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(device);
  if (!gpu) return {};
  const Result<cluster::MigDevice> mig = cluster::mig_device(**gpu);
  if (!mig) return {};
  std::vector<std::string> names;
  for (const cluster::MigProfile* profile : mig->profiles) names.push_back(profile->name);
  return names;
}

/// Whether the data-parallel degree follows from the other degrees and the devices of the cluster.
bool fills(const JobFile& file, const std::optional<GivenCluster>& given) {
  return file.has_plan && file.spec.plan.stages.empty() && given &&
         strategies::ranks_of(file.spec.plan) == given->devices();
}

std::vector<Control> controls_of(const JobFile& file, const std::optional<GivenCluster>& given,
                                 bool can_fill, bool filled, const std::string& slice) {
  std::vector<Control> controls;
  const Candidate candidate = {file.spec.training, file.spec.plan};
  for (const Field<Candidate>& field : strategies::plan_fields()) {
    Control control = control_of(field, candidate, path_of(field),
                                 field.at.section == Section::kTraining ? "training" : "plan");
    control.main |= field.name == "global_batch" || field.name == "dtype";
    if (control.key == kData && can_fill) {
      controls.push_back(
          {.key = std::string(kFill),
           .label = "data fills the GPUs",
           .group = "plan",
           .meaning = "the data-parallel degree is what the other degrees leave of the GPUs",
           .kind = "flag",
           .value = filled ? "true" : "false"});
      control.matters = !filled;
    }
    controls.push_back(std::move(control));
  }
  if (const double tokens = file.spec.workload.tokens_per_sample; tokens > 0)
    controls.push_back({.key = "workload.sequence",
                        .label = "sequence",
                        .group = "training",
                        .meaning = "tokens per sample",
                        .kind = "count",
                        .range = kTokens,
                        .value = fmt::format("{:.0f}", tokens)});
  if (given) add_cluster(*given, controls);
  const std::string& device =
      given && !given->instance ? given->device : file.cluster.devices().front().model;
  if (std::vector<std::string> slices = slices_of(device); !slices.empty() || !slice.empty())
    controls.push_back({.key = std::string(kSlice),
                        .label = "slice",
                        .group = "cluster",
                        .meaning = "one instance of this MIG profile instead of the cluster",
                        .kind = "name",
                        .names = std::move(slices),
                        .value = slice});
  return controls;
}

struct SetJob {
  std::string text;
  std::string slice;
  bool filled;
};

/// The job text with the settings of these controls; those of no control are refused.
Result<SetJob> set(const std::string& text, const std::vector<Control>& controls,
                   const Settings& settings) {
  SetJob job{.text = text, .slice = "", .filled = false};
  std::vector<YamlChange> changes;
  for (const Control& control : controls) {
    const std::string* given = find(settings, control.key);
    if (control.key == kFill) job.filled = (given ? *given : control.value) == "true";
    if (control.key == kSlice && given) job.slice = *given;
  }
  const YamlFile before = TRY(YamlFile::parse(text, "job"));
  if (const std::optional<GivenCluster> given = given_cluster(before.root());
      given && !given->kind.empty() && (find(settings, kLink) || find(settings, kNics)))
    // A network that is given by a word becomes a mapping of this kind.
    changes = {{"cluster.inter_node", ""}, {"cluster.inter_node.kind", given->kind}};
  for (const auto& [key, value] : settings) {
    if (std::ranges::none_of(controls,
                             [&, &name = key](const Control& c) { return c.key == name; }))
      return fail(fmt::format("this page has no setting '{}'", key));
    if (key == kSlice || key == kFill || (key == kData && job.filled)) continue;
    if (key == kLink)
      for (const char* replaced : {"rate", "latency", "network", "message_cost", "half_rate_size"})
        changes.emplace_back(fmt::format("cluster.inter_node.{}", replaced), "");
    changes.emplace_back(key, value);
  }
  job.text = TRY(with_changes(text, changes));
  if (!job.filled || settings.empty()) return job;
  const YamlFile file = TRY(YamlFile::parse(job.text, "job"));
  const std::optional<YamlMap> plan = file.root().map("plan");
  std::uint64_t ranks = 1;
  for (const Field<Candidate>& field : strategies::plan_fields())
    if (field.said == strategies::Said::kDegree && field.name != "data" && plan)
      ranks *= static_cast<std::uint64_t>(std::clamp<std::int64_t>(
          plan->optional<std::int64_t>(field.name).value_or(1), 1, kMostDevices));
  const std::uint64_t devices = given_cluster(file.root()).value_or(GivenCluster{}).devices();
  if (devices == 0) return job;  // the reader of the job says why
  const std::uint64_t data = TRY(data_degree("plan", devices, ranks));
  job.text = TRY(with_changes(job.text, {{std::string(kData), std::to_string(data)}}));
  return job;
}

}  // namespace

Result<LiveSubject> live_job(const std::filesystem::path& path, const Globals& globals) {
  if (is_serve_file(path))
    return fail_in(path, "describes a server, which has no live page",
                   "rehearse simulate and plan predict servers");
  const std::string text = TRY(read_file(path));
  const JobFile file = TRY(load_job(path));
  const YamlFile yaml = TRY(YamlFile::parse(text, path.string()));
  const std::optional<GivenCluster> given = given_cluster(yaml.root());
  const bool can_fill = fills(file, given);
  const std::string closed(name_of(step::Fidelity::kClosed)),
      message(name_of(step::Fidelity::kMessage));
  Globals quiet = globals;  // the page has the warnings
  quiet.quiet = true;
  LiveSubject subject{.name = path.filename().string(),
                      .fidelities = {{closed, "by closed forms"}, {message, "message by message"}},
                      .controls = controls_of(file, given, can_fill, can_fill, ""),
                      .saved_as = path.stem().string() + ".yaml"};
  subject.answer = [path, text, can_fill, controls = subject.controls, quiet](
                       const Settings& settings,
                       std::string_view fidelity) -> Result<LiveSubject::Answer> {
    const SetJob set_job = TRY(set(text, controls, settings));
    hold_file(path, set_job.text);
    const bool exact = fidelity == name_of(step::Fidelity::kMessage);
    // The closed answer is for sliders: it leaves out the runs of changes, and of most microbatches.
    PredictedJob job = TRY(
        predict_job(path, {.slice = set_job.slice,
                           .fidelity = exact ? step::Fidelity::kMessage : step::Fidelity::kClosed,
                           .counterfactuals = exact,
                           .timeline = exact}));
    ReportDetails details;
    if (exact) {
      TRY(try_changes(job, quiet));
      details = with_timeline(step_details(job, path),
                              view_of(job.step.job, job.step.lowered, job.step.timeline));
    }
    details.command = {"rehearse", "simulate", path.string()};
    if (!exact) details.command.insert(details.command.end(), {"--fidelity", "closed"});
    if (!set_job.slice.empty())
      details.command.insert(details.command.end(), {"--slice", set_job.slice});
    const YamlFile yaml_now = TRY(YamlFile::parse(set_job.text, path.string()));
    return LiveSubject::Answer{page_data(step_document(job), details),
                               controls_of(job.file, given_cluster(yaml_now.root()), can_fill,
                                           set_job.filled, set_job.slice)};
  };
  compute::shipped_calibrations();  // are read once, before the first fork
  subject.save = [path, text,
                  controls = subject.controls](const Settings& settings) -> Result<std::string> {
    const SetJob job = TRY(set(text, controls, settings));
    return job.slice.empty() ? job.text
                             : fmt::format("# rehearse simulate {} --slice {}\n{}",
                                           path.filename().string(), job.slice, job.text);
  };
  return subject;
}

}  // namespace rehearse::cli
