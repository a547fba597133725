// rehearse mig layouts: how a GPU can be partitioned.
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/mig_layouts.h"
#include "cli/output/result.h"

namespace rehearse::cli {
namespace {

struct Options {
  std::string device;
  std::string profiles;  ///< empty: all layouts to which nothing can be added
};

Result<MigLayouts> find_layouts(const Options& options) {
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(options.device);
  if (!gpu) return forward(gpu);
  Result<cluster::MigDevice> device = cluster::mig_device(**gpu);
  if (!device) return forward(device);
  if (options.profiles.empty()) {
    std::vector<cluster::MigLayout> layouts = cluster::maximal_layouts(*device);
    return MigLayouts{std::move(*device), std::move(layouts)};
  }
  const Result<cluster::MigSet> set = cluster::parse_profiles(*device, options.profiles);
  if (!set) return forward(set);
  Result<std::vector<cluster::MigLayout>> layouts = cluster::placements(*device, *set);
  if (!layouts) return forward(layouts);
  return MigLayouts{std::move(*device), std::move(*layouts)};
}

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<MigLayouts> found = find_layouts(options);
  if (!found) return forward(found);
  const Formats formats = {.text = [&] { return layouts_text(*found); },
                           .json = [&] { return layouts_json(*found); },
                           .table = [&] { return layouts_table(*found); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_mig(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("mig", "Partitions of a GPU (MIG)");
  command->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App* layouts = command->add_subcommand(
      "layouts",
      "Valid placements of instances on a GPU, drawn by memory slice, and what is wasted");
  layouts->add_option("--device", options->device, "name of the GPU in the catalog")
      ->type_name("NAME")
      ->required();
  layouts
      ->add_option("--profiles", options->profiles,
                   "the instances to place (default: every layout to which nothing can be added)")
      ->type_name("NAME,NAME,...");
  layouts->footer(
      "Fails where they cannot be on one GPU, with the rule that forbids it and the nearest set.\n"
      "Example: rehearse mig layouts --device h100_sxm5_80 --profiles 3g.40gb,2g.20gb,1g.10gb");
  layouts->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
