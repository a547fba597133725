// The accuracy of whole jobs as text, tables and Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "cli/validation/job_accuracy.h"
#include "cli/validation/suite.h"

namespace rehearse::cli {

/// One suite per case, "jobs/NAME", over its blind rows.
std::vector<SuiteSummary> summarize(const JobAccuracy& accuracy);

/// One row per job, the worst first.
Table job_table(const JobAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string job_section(const JobAccuracy& accuracy);

}  // namespace rehearse::cli
