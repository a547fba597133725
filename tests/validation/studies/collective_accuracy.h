// How well closed forms of collectives predict measured rows: the shipped calibrations on the rows
// they were fitted to and on those left out, on other runs and other data, and calibrations carried
// over to numbers of ranks and devices whose rows were not used.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "models/comm/calibration.h"
#include "models/comm/fit.h"
#include "models/comm/nccl_choice.h"

namespace rehearse::cli {

/// One row and its price.
struct PricedRow {
  std::string device;
  comm::MeasuredRow row;
  Seconds price, low, high;

  double error() const { return price / row.time - 1; }
  bool covered() const { return row.time >= low && row.time <= high; }
};

struct CollectiveCase {
  std::string name;
  std::string about;  ///< what was predicted from what
  bool blind = true;  ///< none of its rows gave a constant
  std::vector<PricedRow> rows = {};
};

struct CollectiveAccuracy {
  std::vector<CollectiveCase> cases;
  /// Points at which NCCL's rule and the measured curve agree on Simple or not, of all.
  std::size_t protocol_right = 0, protocol_points = 0;
  std::vector<std::string> protocol_wrong;  ///< the others
  std::vector<std::string> refused;         ///< what was not priced, and why
};

/// Errors of rows in one band, or in all.
struct ErrorSummary {
  std::size_t rows = 0, covered = 0;
  double mean = 0, p90 = 0, bias = 0;  ///< of |error|; of |error|; of error
};
ErrorSummary summarize_errors(const std::vector<PricedRow>& rows,
                              std::optional<std::size_t> band = {},
                              std::optional<CollectiveKind> kind = {});

/// Fails where nccl_measured.csv or another table of its folder is missing or wrong.
Result<CollectiveAccuracy> measure_collective_accuracy(const std::filesystem::path& data);

}  // namespace rehearse::cli
