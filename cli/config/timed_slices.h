// Slices of a GPU: jobs on them by steps timed over batch sizes, and the profiles that fleets place.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/sharing/slice_law.h"
#include "models/sharing/slice_rate.h"
#include "sim/base/result.h"
#include "sim/base/warning.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/partition.h"
#include "sim/fleet/fleet.h"

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

/// The MIG profiles of a GPU as slices of a fleet, and the relative speed of jobs on them.
struct GpuSlices {
  cluster::MigDevice device;
  std::uint32_t positions;
  std::vector<fleet::SliceKind> kinds = {};  ///< the smallest first
  std::vector<std::uint32_t> profiles = {};  ///< of each kind, in `device`

  sharing::SliceRatio ratio(std::size_t kind) const {
    return sharing::ratio_of(device, profiles[kind]);
  }
  /// The relative speed of a job on each kind of slice, from `rate_on`.
  template <class RateOn>
  std::map<std::string, Estimate<double>> rates(const RateOn& rate_on) const {
    std::map<std::string, Estimate<double>> rates;
    for (std::size_t k = 0; k < kinds.size(); ++k) rates.emplace(kinds[k].name, rate_on(k));
    return rates;
  }
};

/// Leaves out profiles with media extensions, which are no larger, and the profile of the whole
/// GPU. If nothing is known of a job, its speed on a slice is the slice's share of the compute
/// slices. Fails if the catalog has no profiles.
Result<GpuSlices> slices_of(const cluster::Gpu& gpu);

}  // namespace rehearse::cli
