#include "cli/commands/share_options.h"

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"

namespace rehearse::cli {

void add_share_options(CLI::App& command, ShareRequest& request, const std::string& other,
                       const char* slice) {
  CLI::Option* sliced =
      offer(add_value(command, "--slice", "PROFILE", request.slice, slice), mig_profile_names);
  CLI::Option* with = add_value(command, "--share-with", "FILE", request.shared_with,
                                fmt::format("run another {} on the same devices at the same "
                                            "time, and show the slowdown of both",
                                            other))
                          ->excludes(sliced);
  add_value(command, "--share", "POLICY", request.share,
            "sharing policy: timeslice[:QUANTUM[,SWITCH]] (default, 2ms,100us), "
            "mps[:40%[,30%]] (shares of the multiprocessors), priority (this job first), "
            "crossover (one computes while the other synchronizes), exclusive")
      ->needs(with)
      ->check(reads_as(parse_sharing));
}

}  // namespace rehearse::cli
