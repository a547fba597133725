// Study: a published system as a short file: jobs, a sweep, measures, and published values
// (docs/formats/study.md).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/expectation.h"
#include "cli/study/expression.h"
#include "cli/study/feeds.h"
#include "models/sharing/crossover.h"
#include "sim/base/yaml.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

struct Measure {
  std::string name;
  std::string expression;  ///< over quantities of jobs
};

struct JobTemplate {
  std::string name;
  YamlMap sections;  ///< sections of a job file, with parameters in them
};

struct Study {
  std::filesystem::path path = {};
  std::string text = {};  ///< of the file
  std::string name = {}, source = {}, about = {};
  std::string system = {};  ///< that the study is about; several studies may share it
  std::optional<SourceKind> source_kind = {};
  std::vector<std::string> assumed = {};
  step::Fidelity fidelity = step::Fidelity::kMessage;
  std::string links = "fair";  ///< of jobs that take turns, perhaps with a parameter in it
  std::vector<std::vector<Setting>> axes = {};  ///< every combination is a point
  std::vector<JobTemplate> jobs = {};
  std::vector<FeedTemplate> feeds = {};
  std::vector<Measure> measures = {};
  /// Two measures that should be small, or none: points on their Pareto front are marked.
  std::vector<std::string> front = {};
  std::vector<Fit> fits = {};
  std::vector<Expectation> expectations = {};  ///< at least one
};

/// A quantity of a job, as in `step_time(NAME)`.
enum class Observed : std::uint8_t {
  kStepTime,
  kThroughput,
  kExposedCommunication,
  kMemory,
  kCost,
  kEnergy,
  kCarbon,
  kInterconnectStall,
  kNetworkStall,
  kNodeSharing,
  kFits,
  kStates,
};
inline constexpr std::string_view kQuantityNames[] = {
    "step_time", "throughput",         "exposed_communication", "memory",       "cost", "energy",
    "carbon",    "interconnect_stall", "network_stall",         "node_sharing", "fits", "states"};
inline constexpr std::string_view kQuantityUnits[] = {"s",     "1/s", "s", "B", "USD", "J",
                                                      "gCO2e", "s",   "s", "s", "",    "B"};
static_assert(std::size(kQuantityNames) == std::size(kQuantityUnits));

/// The measured values of the jobs of a point, by job index.
struct Measured {
  /// The value in its unit; fails if the job has none, such as a cost without instances.
  std::function<Result<Estimate<double>>(Observed, std::size_t job)> of;
  /// The combined throughput of jobs that take turns on the same devices, relative to running them
  /// one after another.
  std::function<Result<Estimate<double>>(std::span<const std::size_t> jobs)> crossover;
  /// A function of a pipeline, a cache or a graph; returns nothing if the function is none of
  /// these.
  std::function<std::optional<Result<Term>>(std::string_view function, std::string_view feed)> feed;
  std::function<Result<Term>(std::string_view name)> parameter;
};

/// The numeric value of a parameter. Fails with one line.
Result<Term> parameter_value(std::string_view name, const Setting& parameters);

/// The value of an expression over the jobs. Fails with one line.
Result<Term> measure(const std::string& expression, const std::vector<JobTemplate>& jobs,
                     const Measured& measured);

/// Fails with every mistake outside of the jobs, one line each. Mistakes in jobs are found when
/// parameters are filled in.
Result<Study> load_study(const std::filesystem::path& path);
/// The same for the text of the file at `path`.
Result<Study> read_study(const std::filesystem::path& path, std::string text);

/// Parses the value of `links`. Fails with one line.
Result<sharing::Links> links_of(const std::string& text);

/// Returns all combinations; the last axis changes fastest.
std::vector<Setting> points_of(const Study& study);

/// Returns the text with `$name` replaced by the parameter, and `$(expression)` by its value. Fails
/// with one line.
Result<std::string> fill_in(const std::string& text, const Setting& parameters);

}  // namespace rehearse::cli
