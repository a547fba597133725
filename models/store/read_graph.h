// Graphs and their partitions from YAML: docs/formats/study.md, sections "caches" and "graphs".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "models/store/graph.h"
#include "sim/base/yaml.h"

namespace rehearse::store {

/// Errors are recorded in the map's file; the result is then meaningless.
struct PartitionedGraph {
  Neighbours graph;
  Partitioner by = Partitioner::kRandom;
  std::uint32_t workers = 1;
};
/// Files of recorded graphs are relative to `folder`.
PartitionedGraph read_partitioned_graph(const YamlMap& map, const std::filesystem::path& folder);

/// Reads `communities`, `inside` and `partition` of a stream of the kind `graph`, in addition to
/// the keys read by its caller.
KeyStream read_sampled(const YamlMap& map, GraphShape graph, const Shape& shape,
                       std::span<const std::uint32_t> fan_out);
/// Reads all of such a stream that has a `file`; `before` as for nth_seed.
KeyStream read_recorded_sampled(const YamlMap& map, const std::filesystem::path& folder,
                                std::uint32_t before);
/// Neighbours sampled at each hop.
std::vector<std::uint32_t> read_fan_out(const YamlMap& map);

}  // namespace rehearse::store
