// The accuracy of replays as text, tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/output/table.h"
#include "tests/validation/studies/page.h"
#include "tests/validation/studies/replay_accuracy.h"

namespace rehearse::cli {

std::vector<SuiteSummary> summarize(const ReplayAccuracy& accuracy);

/// One row per recording.
Table recording_table(const ReplayAccuracy& accuracy);

/// docs/accuracy.md.
std::string accuracy_page(const ReplayAccuracy& accuracy);

}  // namespace rehearse::cli
