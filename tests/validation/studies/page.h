// Parts of docs/accuracy.md that several studies share.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "cli/validation/suite.h"

namespace rehearse::cli {

/// A Markdown list; "None." where there is nothing.
std::string list_of(const std::vector<std::string>& items);

Table suite_table(const std::vector<SuiteSummary>& suites);

}  // namespace rehearse::cli
