// A calibration: the fitted constants of a device, with their source and range of validity.
// docs/concepts/op-cost.md describes the file.
//
// The calibration of the device "typical" has the values that all devices share: shapes, the
// factors of an unknown device, and the widths of predictions from other devices' rows.
//
// A Calibration is a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/constants.h"
#include "sim/base/result.h"

namespace rehearse::compute {

inline constexpr std::string_view kTypical = "typical";

struct FittedTo {
  std::string source = {};     ///< source of the rows
  std::string rows_used = {};  ///< which of them, in words
  std::string date = {};       ///< date of the rows
  std::uint64_t rows = 0;
  double residual = 0;  ///< mean |predicted / measured - 1| over those rows
};

struct MatrixCalibration {
  Arithmetic arithmetic;
  /// Where its shape is absent (no tiles), the typical one of that arithmetic holds.
  MatrixConstants constants;
  FittedTo fitted = {};
};

struct MemoryCalibration {
  MemoryConstants constants;
  /// Only for the typical device: the share of the peak rate of memory other than HBM, or of
  /// Pascal.
  double elementwise_gddr = 0;
  FittedTo fitted = {};
};

struct AttentionCalibration {
  AttentionConstants constants;
  FittedTo fitted = {};
};

struct Calibration {
  std::string device;  ///< name in the catalog, or kTypical
  std::vector<MatrixCalibration> matrix = {};
  std::optional<MemoryCalibration> memory = {};
  std::optional<AttentionCalibration> attention = {};  ///< of kTypical alone
  std::array<std::optional<Width>, kOpClasses> widths = {};

  const MatrixCalibration* find(Arithmetic a) const {
    for (const MatrixCalibration& m : matrix)
      if (m.arithmetic == a) return &m;
    return nullptr;
  }
};

/// Reads the file. Reports all that is wrong at once.
Result<Calibration> parse_calibration(const std::string& text, std::string name);

/// The calibrations compiled into the program; the first is that of kTypical.
const std::vector<Calibration>& shipped_calibrations();

}  // namespace rehearse::compute
