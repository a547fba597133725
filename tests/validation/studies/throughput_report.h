// The accuracy of whole jobs from a few measured steps, as text, tables and Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/page.h"
#include "tests/validation/studies/throughput/throughput_accuracy.h"

namespace rehearse::cli {

/// One suite per way of predicting, "throughput/pollux, a few steps of the job".
std::vector<SuiteSummary> summarize(const ThroughputAccuracy& accuracy);

/// One row per way of predicting and group.
Table throughput_table(const ThroughputAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string throughput_section(const ThroughputAccuracy& accuracy);

}  // namespace rehearse::cli
