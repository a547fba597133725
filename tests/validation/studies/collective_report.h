// The accuracy of collectives as text, tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/collective_accuracy.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

/// One suite per case, "collectives/NAME".
std::vector<SuiteSummary> summarize(const CollectiveAccuracy& accuracy);

/// One row per case: mean error by band, p90, bias, coverage.
Table case_table(const CollectiveAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string collective_section(const CollectiveAccuracy& accuracy);

}  // namespace rehearse::cli
