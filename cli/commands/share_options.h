// The options --slice, --share-with and --share.
#pragma once

#include <string>

#include "cli/commands/share_policy.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// `other` describes the value of --share-with, such as "job file"; `slice` describes --slice.
void add_share_options(CLI::App& command, ShareRequest& request, const std::string& other,
                       const char* slice);

}  // namespace rehearse::cli
