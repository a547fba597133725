// rehearse mig: the partitions of a GPU, and the step time of a job on them.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/config/timed_slices.h"
#include "cli/output/document.h"
#include "sim/base/text.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {
namespace {

using cluster::MigDevice, cluster::MigInstance, cluster::MigLayout, cluster::MigProfile,
    cluster::MigWaste;

struct MigLayouts {
  cluster::MigDevice device;
  std::vector<cluster::MigLayout> layouts;
};

/// Wide enough for the longest name in one slice.
std::size_t cell_width(const MigDevice& device) {
  std::size_t width = 0;
  for (const MigProfile* p : device.profiles)
    if (p->placement_size == 1) width = std::max(width, p->name.size());
  return width;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string names_of(const MigDevice& device, const std::vector<std::uint32_t>& profiles) {
  std::string names;
  for (const std::uint32_t p : profiles) {
    // A profile with media engines fits where the one without does.
    if (device.profile(p).name.ends_with("+me")) continue;
    names += (names.empty() ? "" : " ") + device.profile(p).name;
  }
  return names;
}

Json names_json(const MigDevice& device, const std::vector<std::uint32_t>& profiles) {
  Json names = Json::array();
  for (const std::uint32_t p : profiles) names.push_back(device.profile(p).name);
  return names;
}

/// "0", "1 free", "1 wasted", "1 free, 1 wasted".
std::string left_of(std::uint32_t unused, std::uint32_t wasted) {
  if (wasted == 0) return unused == 0 ? "0" : fmt::format("{} free", unused);
  if (wasted == unused) return fmt::format("{} wasted", wasted);
  return fmt::format("{} free, {} wasted", unused - wasted, wasted);
}

Value instance_fields(const MigDevice& device, const MigInstance& instance) {
  const MigProfile& p = device.profile(instance.profile);
  const cluster::DeviceShare share = cluster::share_of(device, instance.profile);
  const cluster::Gpu slice = cluster::slice_of(device, instance.profile);
  return {{"profile", "profile", p.name},
          {"start", "start", instance.start},
          {"size", "size", p.placement_size},
          {"compute_slices", "compute slices", p.compute_slices},
          {"memory_slices", "memory slices", p.memory_slices},
          {"multiprocessors", "multiprocessors", slice.multiprocessors},
          {"memory", "memory", slice.memory, in::kGib},
          {"memory_rate", "memory rate", slice.memory_rate, in::kGbPerS},
          {"shares",
           {{"multiprocessors", share.multiprocessors},
            {"memory", share.memory},
            {"bandwidth", share.bandwidth},
            {"l2", share.l2},
            {"copy_engines", share.copy_engines},
            {"power", share.power}}}};
}

/// "|2g.20gb        |1g.10gb|       |…": a cell for each memory slice, of equal width; free slices
/// are blank.
std::string drawing_of(const MigDevice& device, const MigLayout& layout) {
  const std::size_t width = cell_width(device);
  std::string line = "|";
  std::uint32_t position = 0;
  const auto fill = [&](std::string name, std::uint32_t slices) {
    line += padded(std::move(name), slices * (width + 1) - 1) + "|";
    position += slices;
  };
  for (const MigInstance& i : layout) {
    while (position < i.start) fill("", 1);
    fill(device.profile(i.profile).name, device.profile(i.profile).placement_size);
  }
  while (position < device.positions) fill("", 1);
  return line;
}

/// The screen has a row per layout (drawing, unused slices, what still fits); CSV has a row per
/// instance.
Document layouts_document(const MigLayouts& found) {
  const MigDevice& device = found.device;
  Document document{
      .command = "mig layouts", .rows = "layouts.instances", .methods = {Method::kLayouts}};
  document.line(fmt::format("{}: {}, {} compute slices, {} memory slices", device.gpu->name,
                            counted(found.layouts.size(), "layout"), device.compute_slices,
                            device.positions));
  document["device"] = device.gpu->name;
  document["compute_slices"] = device.compute_slices;
  document["memory_slices"] = device.positions;
  std::string drawings = "\n    ";
  for (std::uint32_t p = 0; p < device.positions; ++p)
    drawings += padded(fmt::format("{}", p), cell_width(device) + 1);
  Value layouts = Value::array(), screen = Value::array();
  for (const MigLayout& layout : found.layouts) {
    const MigWaste waste = cluster::waste_of(device, layout);
    const std::size_t number = layouts.list().size() + 1;
    drawings += fmt::format("\n{:>2} {}", number, drawing_of(device, layout));
    screen.push_back(
        {{"", "layout", number},
         {"",
          "instances",
          join(layout, " · ", [&](const MigInstance& i) { return device.profile(i.profile).name; }),
          {},
          kOnPage},
         {"", "compute left", left_of(waste.unused_compute, waste.wasted_compute)},
         {"", "memory left", left_of(waste.unused_memory, waste.wasted_memory)},
         {"", "still fits", names_of(device, waste.still_fit), {}, kProse},
         {"", "fits, but no position is free", names_of(device, waste.kept_out), {}, kProse}});
    Value instances = Value::array();
    for (const MigInstance& i : layout) instances.push_back(instance_fields(device, i));
    layouts.push_back(
        {{"", "layout", number},
         {"unused",
          {{"compute_slices", "unused compute slices of the layout", waste.unused_compute},
           {"memory_slices", "unused memory slices of the layout", waste.unused_memory}}},
         {"wasted",
          {{"compute_slices", waste.wasted_compute}, {"memory_slices", waste.wasted_memory}}},
         {"instances", std::move(instances)},
         {"still_fit", names_json(device, waste.still_fit)},
         {"kept_out", names_json(device, waste.kept_out)}});
  }
  document.show("layouts", "", std::move(layouts), {}, kInTables);
  document.line(drawings);
  document.show("", "", std::move(screen));
  return document;
}

Document slices_document(const MigAnswer& answer) {
  const sharing::JobLaw& law = answer.law;
  Document document{
      .command = "mig predict", .rows = "slices.points", .methods = {Method::kSlices}};
  document.line(fmt::format("{}, timed on {}: host {}, GPU {} and {} per sample{}",
                            answer.device.gpu->name, answer.timed_on, to_string(law.host),
                            to_string(law.fixed), to_string(law.per_size),
                            law.identified ? "" : " (next to unknown)"));
  document["device"] = answer.device.gpu->name;
  document["law"] = {
      {"host", law.host},          {"fixed", law.fixed},       {"per_sample", law.per_size},
      {"alpha", law.alpha},        {"beta", law.beta},         {"slice_rate", law.kappa},
      {"exponent", law.sharpness}, {"residual", law.residual}, {"identified", law.identified}};
  Value slices = Value::array();
  for (const MigAnswer::Slice& slice : answer.slices) {
    const cluster::MigProfile& profile = answer.device.profile(slice.profile);
    Value points = Value::array();
    for (const MigPoint& p : slice.points) {
      Value point = {{"batch", "batch", p.batch},
                     {"", "batch", p.batch, {}, kAxis},
                     {"step_time", "step", p.time, in::kMs},
                     {"slowdown", "slowdown", factor(p.slowdown), in::kTimes},
                     {"gain", "gain of all", factor(p.gain), in::kTimes}};
      if (p.memory) {
        point.show("memory", "memory", p.memory->used, in::kGib);
        point.show("fits", "fits", p.memory->fits);
      }
      points.push_back(std::move(point));
    }
    slices.push_back({{"profile", "profile", profile.name},
                      {"instances", "instances", profile.max_instances},
                      {"points", std::move(points)}});
  }
  document["slices"] = std::move(slices);
  document.add_warnings(answer.warnings);
  return document;
}

struct MigOptions {
  std::string device;
  std::string profiles;  ///< empty: all layouts to which nothing can be added
};

Result<MigLayouts> find_layouts(const MigOptions& options) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(options.device));
  cluster::MigDevice device = TRY(cluster::mig_device(gpu));
  if (options.profiles.empty()) {
    std::vector<cluster::MigLayout> layouts = cluster::maximal_layouts(device);
    return MigLayouts{std::move(device), std::move(layouts)};
  }
  const cluster::MigSet set = TRY(cluster::parse_profiles(device, options.profiles));
  std::vector<cluster::MigLayout> layouts = TRY(cluster::placements(device, set));
  return MigLayouts{std::move(device), std::move(layouts)};
}

Result<Exit> run(const MigOptions& options, const Globals& globals) {
  const MigLayouts found = TRY(find_layouts(options));
  return answer_with(globals, layouts_document(found));
}

Result<Exit> run_predict(const MigQuestion& question, const Globals& globals) {
  const MigAnswer answer = TRY(predict_slices(question));
  for (const Warning& warning : answer.warnings) globals.warn(to_string(warning));
  return answer_with(globals, slices_document(answer));
}

void add_predict(CLI::App& mig, Action& action) {
  auto question = std::make_shared<MigQuestion>();
  CLI::App& command = *mig.add_subcommand(
      "predict",
      "Predict the step time on every MIG slice, from a sweep of batch sizes on the whole GPU");
  add_value(command, "STEPS", "FILE", question->steps,
            "CSV with columns profile, batch, step_time_ms and optionally memory_mib: a "
            "sweep on all slices (7g), optionally with steps on one smaller profile")
      ->required();
  offer(add_value(command, "--device", "NAME", question->device, "name of the GPU in the catalog"),
        gpu_names)
      ->required();
  add_choice(command, "--work", question->kind, sharing::kWorkKindNames,
             "main computation of the job: fp32_matmul, transformer (in matrix units), "
             "convolutional, unknown (default)",
             "kind");
  command.add_flag("--inference", question->inference, "the steps are inference, not training");
  command.footer(
      "Example: rehearse mig predict steps.csv --device a100_sxm4_40 --work transformer");
  run_by(command, action, question, run_predict);
}

}  // namespace

void add_mig(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("mig", "List and predict partitions of a GPU (MIG)");
  command.require_subcommand(1);
  auto options = std::make_shared<MigOptions>();
  CLI::App& layouts = *command.add_subcommand(
      "layouts",
      "List valid placements of MIG instances on a GPU, by memory slice, with wasted slices");
  offer(add_value(layouts, "--device", "NAME", options->device, "name of the GPU in the catalog"),
        gpu_names)
      ->required();
  offer(add_value(layouts, "--profiles", "NAME,NAME,...", options->profiles,
                  "instances to place (default: every maximal layout)"),
        mig_profile_names);
  layouts.footer(
      "Example: rehearse mig layouts --device h100_sxm5_80 --profiles 3g.40gb,2g.20gb,1g.10gb\n"
      "Fails if they do not fit on one GPU, with the violated rule and the nearest set.");
  run_by(layouts, action, options, run);
  add_predict(command, action);
}

}  // namespace rehearse::cli
