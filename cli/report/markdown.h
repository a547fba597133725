// What a command found as a comment on a pull request: the answer, figures with their intervals,
// where the time goes, what would help, what to mind.
#pragma once

#include <string>

#include "cli/output/json_value.h"
#include "cli/output/table.h"

namespace rehearse::cli {

/// From what the command prints as JSON; `details` stands folded at the end.
std::string markdown_of(const Json& document, const Table& details, const std::string& title);

}  // namespace rehearse::cli
