// Kernel time of a step on a GPU of another vendor, from its recording: pairs of recordings of one
// script on both (TraceLens: H100 and MI300X, inference).
#pragma once

#include <filesystem>
#include <string>

#include "sim/base/result.h"
#include "tests/validation/studies/timed_cases.h"

namespace rehearse::cli {

/// Each recording lifted, and its ops carried over as `simulate` does with `workload: {recording:
/// …}` (OpCost::carried): nothing is fitted to the pairs. The second result is the same times the
/// ratios by kind of op that the other two pairs show. Empty where the folder has no pairs.
Result<TimedAccuracy> measure_carried_accuracy(const std::filesystem::path& data);

std::string carried_section(const TimedAccuracy& accuracy);

}  // namespace rehearse::cli
