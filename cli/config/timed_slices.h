// Reads steps timed over batch sizes on a GPU, and optionally on one slice, and fits the law for
// every slice.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/sharing/slice_law.h"
#include "models/sharing/slice_memory.h"
#include "sim/base/warning.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {

struct MigQuestion {
  std::string device;           ///< in the catalog
  std::filesystem::path steps;  ///< a table: profile, batch, step_time_ms, optionally memory_mib
  sharing::WorkKind kind = sharing::WorkKind::kUnknown;
  bool inference = false;
};

struct MigPoint {
  double batch;
  Estimate<Seconds> time;
  double slowdown;  ///< relative to the whole instance
  double gain;      ///< of as many instances as fit, relative to one after another on the whole
  std::optional<sharing::SliceMemory> memory;  ///< if the table gives the memory of the whole
};

struct MigAnswer {
  struct Slice {
    std::uint32_t profile;
    std::vector<MigPoint> points = {};
  };
  cluster::MigDevice device;
  sharing::JobLaw law;
  std::string timed_on;  ///< "7g.80gb" or "7g.80gb and 1g.10gb"
  std::vector<Slice> slices = {};
  std::vector<Warning> warnings = {};
};

/// Rows of the whole instance (7g; 4g on A30) are the sweep. Rows of at most one other profile fit
/// the job's own constants. Fails with one line per mistake: in the table, steps that are not a
/// sweep, or rows of several slices.
Result<MigAnswer> predict_slices(const MigQuestion& question);

}  // namespace rehearse::cli
