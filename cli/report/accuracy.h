// Rows of docs/accuracy.md for the report page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/value.h"

namespace rehearse::cli {

/// The rows of suites whose names begin with one of these, in the order of the page; each row has
/// its cells by heading.
Json accuracy_of(const std::vector<std::string>& suites);

/// The same for any page of that form.
Json accuracy_in(std::string_view page, const std::vector<std::string>& suites);

}  // namespace rehearse::cli
