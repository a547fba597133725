// Options that commands on recordings and on predicted steps share.
#include "cli/commands/options.h"
#include "cli/commands/replay_job.h"

namespace rehearse::cli {

void add_input_options(CLI::App& command, ReplayRequest& request) {
  add_value(command, "INPUT", "FILE", request.inputs,
            "recordings of one job: files, or a folder of them")
      ->required();
  add_value(command, "--ranks", "N,...", request.ranks, "only these ranks (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_replay_options(CLI::App& command, ReplayRequest& request) {
  add_input_options(command, request);
  command.add_flag("--residuals", request.lower.residuals, "keep unexplained delays as ops");
  add_run_files(command, request.files, "recorded and simulated timelines");
}

void add_run_files(CLI::App& command, RunFiles& files, const std::string& timeline) {
  add_value(command, "--perfetto", "FILE", files.perfetto,
            fmt::format("write {} for ui.perfetto.dev", timeline));
  add_value(command, "--report", "FILE", files.report, "write the result as one HTML page");
}

}  // namespace rehearse::cli
