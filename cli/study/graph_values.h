// Measures of partitioned graphs in studies (docs/formats/study.md, section "graphs").
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/study/expression.h"
#include "models/store/full_graph.h"
#include "sim/base/yaml.h"
#include "sim/cluster/cluster.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

struct GraphRun {
  store::Halo halo = {};
  double expected_halo;  ///< of a random partition
  std::optional<store::GraphNetwork> network;
  std::optional<cluster::Cluster> cluster = {};
};

/// Mistakes are recorded in the map's file; the result is then meaningless. Files of recorded
/// graphs are relative to `folder`.
GraphRun read_graph(const YamlMap& map, const std::filesystem::path& folder);

/// A function of graphs in its unit; `epoch_time` runs a step on the cluster. Fails with one line,
/// for example if the graph has no network.
Result<Term> graph_value(const GraphRun& run, std::string_view function, step::Fidelity fidelity);

}  // namespace rehearse::cli
