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
  command.add_flag_callback(
      "--residuals", [&request] { request.lower.residuals = replay::Residuals::kAll; },
      "keep every unexplained delay, not only those that recur in most steps");
  add_run_files(command, request.files, "recorded and simulated timelines");
}

void add_run_files(CLI::App& command, RunFiles& files, const std::string& timeline) {
  add_value(command, "--perfetto", "FILE", files.perfetto,
            fmt::format("write {} for ui.perfetto.dev", timeline));
}

}  // namespace rehearse::cli
