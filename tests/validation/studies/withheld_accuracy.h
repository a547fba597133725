// Whole jobs on a GPU known only by its datasheet and a table of matrix products.
#pragma once

#include <filesystem>
#include <string>

#include "models/compute/device_facts.h"
#include "sim/base/result.h"
#include "tests/validation/studies/job_accuracy.h"
#include "tests/validation/studies/timed_cases.h"

namespace rehearse::cli {

/// The dense rows of suite `jobs`, by device. Withheld: what was fitted to jobs on the architecture
/// (time of matrix products against benchmarks, share of the memory rate, attention, FP8 against
/// half precision) and its tables of memory-bound kernels. They are replaced with the values of
/// other architectures. Collectives keep their calibrations, since those describe links. Empty where the
/// folder has no tables of jobs.
Result<TimedAccuracy> measure_withheld_accuracy(const std::filesystem::path& data);

/// One of its rows.
Result<JobPrediction> predict_withheld(const MeasuredJob& row);

std::string withheld_section(const TimedAccuracy& accuracy);

/// The share of the half-precision peak that the kernels get on `to` which get `share` of it on
/// `from`, the same code on both: it does as much per multiprocessor and clock, and gains nothing
/// from matrix units that it was not written for. MPT's Triton attention of 2023: 0.35 on A100,
/// from which 0.19 follows on H100; a fit to its jobs there gives 0.19. Nothing across vendors, and
/// where a clock or the peak is not known.
std::optional<double> same_kernels_share(double share, const compute::DeviceFacts& from,
                                         const compute::DeviceFacts& to);

}  // namespace rehearse::cli
