// From measured tables of operations to calibrations: those that are shipped, and those of a
// validation that leaves a device out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/compute/calibration.h"
#include "tests/validation/studies/operation_tables.h"

namespace rehearse::cli {

/// The rows of a table, dealt by distinct shape: every third shape, in order, is left out of fits.
struct DealtOperations {
  OperationTable table;  ///< its rows are those that may be fitted
  std::vector<compute::MeasuredOp> blind;

  const std::string& device() const { return table.measured.facts.name; }
};

/// All tables of the folder of published data that are read, dealt. Fails where none is there, or
/// one is wrong.
Result<std::vector<DealtOperations>> deal_operations(const std::filesystem::path& data);

/// How the tables were timed, by device and kind of rows; "" means devices that are not there.
class Timings {
 public:
  void set(const std::string& device, const std::string& kind, compute::Timing timing) {
    all_[{device, kind}] = timing;
  }
  compute::Timing find(const std::string& device, const std::string& kind) const;
  void add(const Timings& other) { all_.insert(other.all_.begin(), other.all_.end()); }

 private:
  std::map<std::pair<std::string, std::string>, compute::Timing> all_;
};

struct OperationFits {
  std::vector<compute::Calibration> calibrations;  ///< the first is that of all devices
  Timings timings;
};

/// Fits what tables hold. What was fitted to the same tables before is not fitted again: a device
/// that is left out changes few of the fits.
class OperationFitter {
 public:
  /// The tables must stay.
  explicit OperationFitter(const std::vector<DealtOperations>& dealt) : dealt_(dealt) {}

  /// To all tables but those of devices of the chip of `without` (none, where it is empty). The best
  /// rate that a search found is a published figure of a device, and stays.
  /// Fails where no table of products is left, neither in FP32 nor in half precision.
  Result<OperationFits> fit(const std::string& without = {});

  /// Sets the widths of every calibration: of devices with rows from their blind rows, of others
  /// by the rule of left_out_width.h, where a source is a chip. Fails as `fit`.
  Status set_widths(OperationFits& fits);

  /// Products of one arithmetic.
  struct Products {
    compute::MatrixCalibration typical = {};
    std::vector<std::pair<std::string, compute::MatrixCalibration>> own = {};  ///< by device
    Timings timings = {};
  };
  struct Known {
    std::map<std::pair<compute::Arithmetic, std::vector<const OperationTable*>>, Products> products;
    std::map<std::pair<compute::Arithmetic, std::string>, compute::MatrixFit> own;  ///< by device
    std::map<std::string, compute::MemoryFit> memory;                               ///< by device
    std::map<std::vector<const OperationTable*>, compute::AttentionFit> attention;
  };

 private:
  const std::vector<DealtOperations>& dealt_;
  Known known_;
};

}  // namespace rehearse::cli
