// The accuracy of operations as text, tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/operation_accuracy.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

/// One suite per way of predicting and kind of rows, "operations/left out, linear".
std::vector<SuiteSummary> summarize(const OperationAccuracy& accuracy);

/// One row per way, kind and device: median, mean, p90, bias, coverage.
Table operation_table(const OperationAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string operation_section(const OperationAccuracy& accuracy);

}  // namespace rehearse::cli
