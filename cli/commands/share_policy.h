// The values of --slice, --share-with and --share: the part of its devices that a job gets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/sharing/tenants.h"

namespace rehearse::cli {

struct ShareRequest {
  std::string slice;                  ///< a MIG profile; empty: whole devices
  std::filesystem::path shared_with;  ///< empty: alone
  std::string share;                  ///< empty: the default of processes that share a GPU

  bool asked() const { return !shared_with.empty(); }
};

/// "mps", "mps:40%", "mps:40%,30%", "priority", "timeslice", "timeslice:2ms,100us", "crossover",
/// "exclusive". If only one share is given, the other job gets the rest.
Result<sharing::Sharing> parse_sharing(std::string_view text);

/// The policy of the request; time slices by default. Adds assumptions to `notes`. REQUIRES:
/// `share` was parsed before.
sharing::Sharing sharing_of(const ShareRequest& request, std::vector<std::string>& notes);

/// "time slices of 2.00 ms, with 100 us per switch".
std::string describe(const sharing::Sharing& sharing);

}  // namespace rehearse::cli
