// The accuracy of predictions for slices, as text, tables and Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/page.h"
#include "tests/validation/studies/sharing/slice_accuracy.h"

namespace rehearse::cli {

/// One suite per case, "sharing/whole GPU alone".
std::vector<SuiteSummary> summarize(const SliceAccuracy& accuracy);

/// The worst rows of each case.
Table slice_table(const SliceAccuracy& accuracy);

/// The section of docs/accuracy.md.
std::string slice_section(const SliceAccuracy& accuracy);

}  // namespace rehearse::cli
