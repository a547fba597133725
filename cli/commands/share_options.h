// The options --share-with and --share.
#pragma once

#include <string>

#include "cli/commands/share_policy.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rehearse::cli {

/// `other` describes the value of --share-with, such as "job file". --share-with and `slice` exclude
/// each other.
void add_share_options(CLI::App& command, ShareRequest& request, const std::string& other,
                       CLI::Option* slice);

}  // namespace rehearse::cli
