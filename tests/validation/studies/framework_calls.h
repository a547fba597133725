// Published times of collectives that were taken inside a framework: what they cost there above
// nccl-tests is fitted to every second row of each curve; the others are left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/comm/framework_timing.h"
#include "tests/validation/studies/measured_tables.h"

namespace rehearse::cli {

/// The calls of one source, all priced as A100.
struct FrameworkCalls {
  std::string name;   ///< "a100, Vidur"
  std::string about;  ///< how they were timed
  std::vector<comm::MeasuredRow> fitted, blind;
};

Result<std::vector<FrameworkCalls>> read_framework_calls(const std::filesystem::path& data);

/// From the fitted rows of all sources, each band of sizes of each source
/// weighing the same. REQUIRES: the calibration of
/// A100.
Result<comm::FrameworkTiming> fit_framework_calls(const std::vector<FrameworkCalls>& sources,
                                                  const comm::Calibration& a100);

}  // namespace rehearse::cli
