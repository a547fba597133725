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

/// How the tables were timed, by device and kind of rows; "" stands for devices that are not there.
class Timings {
 public:
  void set(const std::string& device, const std::string& kind, compute::Timing timing) {
    all_[{device, kind}] = timing;
  }
  compute::Timing find(const std::string& device, const std::string& kind) const;

 private:
  std::map<std::pair<std::string, std::string>, compute::Timing> all_;
};

struct OperationFits {
  std::vector<compute::Calibration> calibrations;  ///< the first is that of all devices
  Timings timings;
};

/// Fits what the tables hold, but for tables of devices of the chip of `without` (none, where it is
/// empty). The best rate that a search found is a published figure of a device, and stays.
/// Fails where no table of products is left, neither in FP32 nor in half precision.
Result<OperationFits> fit_operations(const std::vector<DealtOperations>& dealt,
                                     const std::string& without = {});

/// Sets the widths of every calibration: of devices with rows from their blind rows, of others from
/// each device's rows as predicted with its chip left out.
/// Fails as fit_operations.
Status set_widths(OperationFits& fits, const std::vector<DealtOperations>& dealt);

}  // namespace rehearse::cli
