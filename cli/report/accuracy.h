// Rows of docs/accuracy.md for the report page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/value.h"

namespace rehearse::cli {

/// Rows of the suites whose names begin with one of these, in the order of the page; of each its
/// cells by heading.
Json accuracy_of(const std::vector<std::string>& suites);

/// The same of a page of that form.
Json accuracy_in(std::string_view page, const std::vector<std::string>& suites);

}  // namespace rehearse::cli
