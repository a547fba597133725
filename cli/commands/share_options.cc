#include "cli/commands/share_options.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace rehearse::cli {

void add_share_options(CLI::App& command, ShareRequest& request, const std::string& other,
                       CLI::Option* slice) {
  CLI::Option* beside = command
                            .add_option("--beside", request.beside,
                                        fmt::format("run another {} on the same devices at the "
                                                    "same time, and show the slowdown of both",
                                                    other))
                            ->type_name("FILE")
                            ->excludes(slice);
  command
      .add_option("--share", request.share,
                  "sharing policy: timeslice[:QUANTUM[,SWITCH]] (default, 2ms,100us), "
                  "mps[:40%[,30%]] (shares of the multiprocessors), priority (this job first), "
                  "crossover (one computes while the other synchronizes), exclusive")
      ->type_name("POLICY")
      ->needs(beside)
      ->check(CLI::Validator(
          [](const std::string& text) {
            const Result<sharing::Sharing> sharing = parse_sharing(text);
            return sharing ? std::string() : to_string(sharing.error());
          },
          "", ""));
}

}  // namespace rehearse::cli
