// JobFile: the workload, training, plan and cluster of a job (docs/formats/job.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/config/job_costs.h"
#include "cost/whole_job.h"
#include "models/input/pipeline.h"
#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"
#include "strategies/search/space.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// The amount of training; one member is set.
struct Target {
  std::optional<double> tokens, samples, steps;
  std::optional<double> epochs;  ///< as given; `samples` is derived from it
};

/// The use of a job file: one plan, a search for plans, or a search that also covers what to rent.
/// In a search, missing settings of how a model is computed default, for every plan, to those of
/// frameworks with tensor parallelism. Only kRent may search several regions and markets.
enum class JobUse : std::uint8_t { kOnePlan, kSearch, kRent };

struct JobFile {
  std::string name;  ///< of the workload, for people
  step::Spec spec;
  bool has_plan = false;  ///< else `spec.plan` is one rank
  /// The axes that a search keeps fixed: those that `plan` sets, and `microbatch` and `recompute`
  /// of `training`.
  strategies::Axes axes;
  cluster::Cluster cluster;
  cost::Place place;                     ///< without a region if there are several
  Rent rent;                             ///< as in the file
  cost::Keeping keeping;                 ///< stored data, and rate of interruptions
  std::optional<input::Pipeline> input;  ///< feeds each node; absent: no wait for input
  std::optional<Target> target;
  std::optional<double> epoch;       ///< samples per epoch, if the file gives them
  std::vector<std::string> assumed;  ///< assumptions for settings that the file omits, for people
  std::vector<std::string> notes;    ///< caveats of a recording, for people
};

/// Reads the sections of a job from a file that may have other sections; paths are relative to
/// `folder`. Fails with every mistake in the file, one line each. A cluster file replaces the
/// section `cluster`. With the profile of a `slice`, one such instance of the cluster's first
/// device replaces the cluster, at its share of the price.
Result<JobFile> read_job(const YamlMap& root, const std::filesystem::path& folder,
                         const std::filesystem::path& cluster_file = {},
                         std::string_view slice = {}, JobUse use = JobUse::kOnePlan);

/// The same on another cluster with a number of instances; a section `cluster` is ignored and may
/// be absent. For JobUse::kRent.
Result<JobFile> read_job_on(const YamlMap& root, const std::filesystem::path& folder,
                            cluster::Cluster cluster, cost::Rented rented);

/// The same for a file that holds only a job.
Result<JobFile> load_job(const std::filesystem::path& path,
                         const std::filesystem::path& cluster_file = {},
                         std::string_view slice = {}, JobUse use = JobUse::kOnePlan);

/// Whether a file has a workload. REQUIRES: it is no recording, which may be large.
bool is_job_file(const std::filesystem::path& path);

/// An error about the job as a whole: adds the file if the error names none, and the line of the
/// section, or of the key of a section ("plan.tensor"), that it names or that its problem begins
/// with.
tl::unexpected<Error> wrong_in(const std::filesystem::path& path, Error error);
/// The result, with such an error of the file.
template <class T>
Result<T> in_file(const std::filesystem::path& path, Result<T> result) {
  if (!result) return wrong_in(path, std::move(result.error()));
  return result;
}

}  // namespace rehearse::cli
