// Options that commands on recordings share.
#include <CLI/CLI.hpp>

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
  command
      .add_option("--perfetto", request.perfetto,
                  "write recorded and simulated timelines for ui.perfetto.dev")
      ->type_name("FILE");
  command.add_option("--report", request.report, "write the result as one HTML page")
      ->type_name("FILE");
}

}  // namespace rehearse::cli
