// The accuracy of memory as text, tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/memory_accuracy.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

/// One suite per case, "memory/NAME".
std::vector<SuiteSummary> summarize(const MemoryAccuracy& accuracy);

/// One row per case.
Table case_table(const MemoryAccuracy& accuracy);

/// One row per table of jobs that ran.
Table fit_table(const MemoryAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string memory_section(const MemoryAccuracy& accuracy);

}  // namespace rehearse::cli
