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

/// How long to train; one of them.
struct Target {
  std::optional<double> tokens, samples, steps;
  std::optional<double> epochs;  ///< as given; `samples` is what they are
};

/// What a job file is read for: one plan, the search of one, or that of what to rent, too. For a
/// search, what the file does not say of how a model is computed is that of frameworks with tensor
/// parallelism, under every plan. Only what to rent may be searched in several regions and markets.
enum class JobUse : std::uint8_t { kOnePlan, kSearch, kRent };

struct JobFile {
  std::string name;  ///< of the workload, for people
  step::Spec spec;
  bool has_plan = false;  ///< else `spec.plan` is one rank
  /// What a search keeps fixed: what `plan` says, and `microbatch` and `recompute` of `training`.
  strategies::Axes axes;
  cluster::Cluster cluster;
  cost::Place place;                     ///< without a region where there are several
  Rent rent;                             ///< as the file has it
  cost::Keeping keeping;                 ///< what is kept of the job, and how often it is lost
  std::optional<input::Pipeline> input;  ///< what feeds each node; absent: nothing is waited for
  std::optional<Target> target;
  std::optional<double> epoch;       ///< samples of one, where the file says so
  std::vector<std::string> assumed;  ///< what the file does not say, for people
  std::vector<std::string> notes;    ///< what to know of a recording; for people
};

/// The sections of a job, in a file that may have other sections; paths in it are relative to
/// `folder`. Fails with every mistake of the file, one line each. A cluster file takes the place of
/// the section `cluster`. With the profile of a `slice`, one such instance of the cluster's first
/// device takes the place of the cluster, at its part of the price.
Result<JobFile> read_job(const YamlMap& root, const std::filesystem::path& folder,
                         const std::filesystem::path& cluster_file = {},
                         std::string_view slice = {}, JobUse use = JobUse::kOnePlan);

/// The same on another cluster with a number of instances: the section `cluster` may be absent, and
/// says nothing where it is. For JobUse::kRent.
Result<JobFile> read_job_on(const YamlMap& root, const std::filesystem::path& folder,
                            cluster::Cluster cluster, cost::Rented rented);

/// The same of a file that holds a job alone.
Result<JobFile> load_job(const std::filesystem::path& path,
                         const std::filesystem::path& cluster_file = {},
                         std::string_view slice = {}, JobUse use = JobUse::kOnePlan);

/// What is wrong with a job as a whole: the error, with the file where it names none, and the line
/// of the section that it names.
tl::unexpected<Error> wrong_in(const std::filesystem::path& path, Error error);

}  // namespace rehearse::cli
