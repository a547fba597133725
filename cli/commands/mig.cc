// rehearse mig: the partitions of a GPU, and the step time of a job on them.
#include <fmt/core.h>

#include "cli/commands/mig_result.h"
#include "cli/commands/options.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct MigOptions {
  std::string device;
  std::string profiles;  ///< empty: all layouts to which nothing can be added
};

Result<MigLayouts> find_layouts(const MigOptions& options) {
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

Result<Exit> run(const MigOptions& options, const Globals& globals) {
  const Result<MigLayouts> found = find_layouts(options);
  if (!found) return forward(found);
  return answer_with(globals, layouts_document(*found));
}

Result<Exit> run_predict(const MigQuestion& question, const Globals& globals) {
  const Result<MigAnswer> answer = predict_slices(question);
  if (!answer) return forward(answer);
  for (const Warning& warning : answer->warnings) globals.warn(to_string(warning));
  return answer_with(globals, slices_document(*answer));
}

void add_predict(CLI::App& mig, Action& action) {
  auto question = std::make_shared<MigQuestion>();
  CLI::App& command = *mig.add_subcommand(
      "predict",
      "Predict steps on every slice of a GPU, from steps timed over batches on the whole GPU");
  add_value(command, "STEPS", "FILE", question->steps,
            "CSV with columns profile, batch, step_time_ms and optionally memory_mib: a "
            "sweep on all slices (7g), optionally with steps on one smaller profile")
      ->required();
  add_value(command, "--device", "NAME", question->device, "name of the GPU in the catalog")
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
  add_value(layouts, "--device", "NAME", options->device, "name of the GPU in the catalog")
      ->required();
  add_value(layouts, "--profiles", "NAME,NAME,...", options->profiles,
            "instances to place (default: every maximal layout)");
  layouts.footer(
      "Fails if they do not fit on one GPU, with the violated rule and the nearest set.\n"
      "Example: rehearse mig layouts --device h100_sxm5_80 --profiles 3g.40gb,2g.20gb,1g.10gb");
  run_by(layouts, action, options, run);
  add_predict(command, action);
}

}  // namespace rehearse::cli
