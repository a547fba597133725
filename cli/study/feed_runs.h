// Runs of the parts of a study other than training jobs, by kind (docs/formats/study.md).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "cli/study/expectation.h"
#include "cli/study/expression.h"
#include "sim/base/yaml.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

/// The parameters of a point, and the value of an expression over the parts of its study when some
/// of them are replaced or added.
struct PointValues {
  const Setting& parameters;
  std::function<Result<double>(const std::string& expression, const Setting& replaced)> at;
};

/// What the runs at one point depend on.
struct FeedContext {
  std::filesystem::path study;  ///< its file
  step::Fidelity fidelity;
  PointValues point;  ///< by which controllers price their choices

  /// From which the paths in the study begin.
  std::filesystem::path folder() const { return study.parent_path(); }
};

/// The value of each function of a kind, a number or a list as it states, perhaps without its unit. Fails with one line, for example
/// if a graph has no network, or a server no SLO. REQUIRES: a function of the kind.
using FeedRun = std::function<Result<Term>(std::string_view function)>;

/// Each runs what the mapping describes, and fails with its mistakes.
Result<FeedRun> run_pipeline(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_cache(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_graph(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_dataflow(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_accelerator(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_controller(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_flow(const YamlMap& map, const FeedContext& context);
Result<FeedRun> run_slice(const YamlMap& map, const FeedContext& context);
/// A job with a section `graph`: ops that run in order on servers and links.
Result<FeedRun> run_ops(const YamlMap& map, const FeedContext& context);
/// A job with a section `serve`, under its load.
Result<FeedRun> run_server(const YamlMap& map, const FeedContext& context);

/// A value without an interval, and a list of these.
inline Term exact(double value) { return {{value, value, value, Provenance::kDatasheet}}; }
inline Term exact_list(const std::vector<double>& values) {
  Term list;
  for (const double value : values) list.list.push_back(exact(value).estimate);
  return list;
}

}  // namespace rehearse::cli
