// Options that commands on recordings and on predicted steps share.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/replay_job.h"

namespace rehearse::cli {

void add_input_options(CLI::App& command, ReplayRequest& request) {
  command.add_option("INPUT", request.inputs, "recordings of one job: files, or a folder of them")
      ->type_name("FILE")
      ->required();
  command.add_option("--ranks", request.ranks, "only these ranks (default: all)")
      ->delimiter(',')
      ->type_name("N,...")
      ->allow_extra_args(false);
}

void add_replay_options(CLI::App& command, ReplayRequest& request) {
  add_input_options(command, request);
  command.add_flag("--residuals", request.lower.residuals, "keep unexplained delays as ops");
  add_run_files(command, request.files, "recorded and simulated timelines");
}

void add_run_files(CLI::App& command, RunFiles& files, const std::string& timeline) {
  command
      .add_option("--perfetto", files.perfetto,
                  fmt::format("write {} for ui.perfetto.dev", timeline))
      ->type_name("FILE");
  command.add_option("--report", files.report, "write the result as one HTML page")
      ->type_name("FILE");
}

}  // namespace rehearse::cli
