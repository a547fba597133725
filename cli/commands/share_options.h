// The options --beside and --share.
#pragma once

#include <string>

#include "cli/commands/share_policy.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rehearse::cli {

/// `other` describes the value of --beside, such as "job file". --beside and `slice` exclude each
/// other.
void add_share_options(CLI::App& command, ShareRequest& request, const std::string& other,
                       CLI::Option* slice);

}  // namespace rehearse::cli
