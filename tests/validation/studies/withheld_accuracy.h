// Whole jobs on a GPU of which only the datasheet and a table of matrix products are taken as
// known.
#pragma once

#include <filesystem>
#include <string>

#include "sim/base/result.h"
#include "tests/validation/studies/timed_cases.h"

namespace rehearse::cli {

/// The dense rows of suite `jobs`, by device. Withheld: what was fitted to jobs on the architecture
/// (time of matrix products against benchmarks, share of the memory rate, attention, FP8 against
/// half precision) and its tables of memory-bound kernels. In their place stands what other
/// architectures say. Collectives keep their calibrations, which are of links. Empty where the
/// folder has no tables of jobs.
Result<TimedAccuracy> measure_withheld_accuracy(const std::filesystem::path& data);

std::string withheld_section(const TimedAccuracy& accuracy);

}  // namespace rehearse::cli
