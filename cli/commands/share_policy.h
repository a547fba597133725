// The values of --beside and --share: a second job on the same devices, and the sharing policy.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/sharing/tenants.h"

namespace rehearse::cli {

struct ShareRequest {
  std::filesystem::path beside;  ///< empty: alone
  std::string share;             ///< empty: as processes share a GPU unasked

  bool asked() const { return !beside.empty(); }
};

/// "mps", "mps:40%", "mps:40%,30%", "priority", "timeslice", "timeslice:2ms,100us", "crossover",
/// "exclusive". Of one share the other job has the rest.
Result<sharing::Sharing> parse_sharing(std::string_view text);

/// What the request says; time slices where it says nothing. `notes` gets what is assumed.
/// REQUIRES: `share` was parsed before.
sharing::Sharing sharing_of(const ShareRequest& request, std::vector<std::string>& notes);

/// "time slices of 2.00 ms, with 100 us per switch".
std::string describe(const sharing::Sharing& sharing);

}  // namespace rehearse::cli
