// The accuracy of whole jobs as text, tables and Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/job_accuracy.h"
#include "tests/validation/studies/page.h"

namespace rehearse::cli {

/// One suite per case, "SUITE/NAME", over its blind rows.
std::vector<SuiteSummary> summarize(std::string_view suite, const JobAccuracy& accuracy);

/// One row per job, the worst first.
Table job_table(const JobAccuracy& accuracy);

/// Sections of docs/accuracy.md: tables next to the source tree; tables of public pages; jobs
/// recalled from papers.
std::string job_section(const JobAccuracy& accuracy);
std::string published_section(const JobAccuracy& accuracy);
std::string recalled_section(const JobAccuracy& accuracy);

}  // namespace rehearse::cli
