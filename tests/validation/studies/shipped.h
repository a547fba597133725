// How the calibrations that the program ships were made, so that they can be made again:
//   accuracy make collectives --data DIR --into FOLDER
#pragma once

#include <filesystem>
#include <vector>

#include "models/comm/calibration.h"
#include "tests/validation/studies/measured_tables.h"

namespace rehearse::cli {

/// The rows of a device dealt into those that its shipped calibration is fitted to, and the others.
struct Dealt {
  comm::FitRequest request;
  std::vector<comm::MeasuredRow> fitted, blind;
};

/// For every shipped calibration, by device. Of the curves of nccl-tests every fourth size is left
/// out, each curve beginning with another; of finely stepped tables, eight sizes per doubling are
/// fitted. Fails where a table is missing.
Result<std::vector<Dealt>> deal_shipped(const std::filesystem::path& data);

}  // namespace rehearse::cli
