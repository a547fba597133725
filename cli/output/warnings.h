// Warnings as documents carry them.
#pragma once

#include <vector>

#include "cli/output/json_value.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// "warnings" of the JSON contract, and "warning_remedies", which has as many.
void put_warnings(Json& document, const std::vector<Warning>& warnings);

}  // namespace rehearse::cli
