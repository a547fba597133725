#include "models/store/read_graph.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/store/read_parts.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"

namespace rehearse::store {
namespace {

constexpr double kMostSampled = 2e8;

void read_communities(const YamlMap& map, GraphShape& graph) {
  graph.communities = count_in(map, "communities", graph.keys, 1);
  graph.inside = map.optional<double>("inside").value_or(0);
  if (!(graph.inside >= 0 && graph.inside <= 1))
    map.report("inside", fmt::format("{:g} of the neighbours", graph.inside), "0 to 1");
  if (map.has("inside") && graph.communities == 1)
    map.report("inside", "of no communities", "communities: 64");
}

/// Whether the graph is too large, because all edges are generated.
bool is_too_large(const YamlMap& map, const GraphShape& graph) {
  const double edges = double(graph.keys) * graph.degree;
  if (edges <= kMostEdges) return false;
  map.report("degree", fmt::format("{:.3g} neighbours in all", edges),
             fmt::format("{:g} at most", kMostEdges), "a smaller copy of all sizes");
  return true;
}

/// By its shape, or from a file; a graph of one key after an error.
Neighbours read_neighbours(const YamlMap& map, const std::filesystem::path& folder) {
  const Neighbours nothing({.keys = 1, .degree = 1, .exponent = 0});
  if (const auto file = map.optional<std::string>("file")) {
    const Result<std::string> text =
        named_file(folder, *file).and_then([](const auto& path) { return read_file(path); });
    if (!text) {
      map.report("file", fmt::format("'{}' {}", *file, text.error().diagnostics.front().problem));
      return nothing;
    }
    return taken(map, "file", recorded_graph(*text, *file), nothing);
  }
  GraphShape shape{.keys = count_in(map, "keys", 100'000'000),
                   .degree = count_in(map, "degree", 100'000'000),
                   .exponent = 0,
                   .seed = count_in(map, "seed", 0xffff'ffff, 1)};
  read_communities(map, shape);
  if (is_too_large(map, shape)) return nothing;
  shape.exponent = exponent_of(map, shape.keys);
  if (!map.status()) return nothing;
  return Neighbours(shape);
}

/// `communities` of the graph; 0 if they are unknown.
void read_partition(const YamlMap& map, std::uint32_t communities, std::uint32_t& workers,
                    Partitioner& by) {
  workers = count_in(map, "workers", kMostWorkers);
  map.choose("by", kPartitionerNames, by);
  if (by == Partitioner::kCommunities && communities < workers)
    map.report("by", fmt::format("{} communities among {} workers", communities, workers),
               "one for each worker at least", "random, greedy or fennel");
}

/// The keys sampled by the worker of the partition that the map holds.
KeyStream sampled_by(const YamlMap& map, const Neighbours& graph, std::uint32_t communities,
                     const Shape& shape, std::span<const std::uint32_t> fan_out) {
  const KeyStream nothing{.keys = 1};
  const auto among = map.map("partition");
  if (!among) return nothing;
  std::uint32_t workers = 1;
  Partitioner by = Partitioner::kRandom;
  read_partition(*among, communities, workers, by);
  const std::int64_t worker = among->optional<std::int64_t>("worker").value_or(0);
  if (worker < 0 || worker >= workers)
    among->report("worker", fmt::format("{} of {} workers", worker, workers),
                  "0 for the first worker");
  among->no_other_keys();
  if (!map.status()) return nothing;
  const Partition held = partition(graph, by, workers);
  if (std::find(held.holder.begin(), held.holder.end(), worker) == held.holder.end()) {
    among->report("worker", fmt::format("worker {} holds none of {} keys", worker, graph.keys()),
                  "fewer workers");
    return nothing;
  }
  return sampled_keys(graph, shape, fan_out, Mine{held, static_cast<std::uint32_t>(worker)});
}

}  // namespace

std::vector<std::uint32_t> read_fan_out(const YamlMap& map) {
  std::vector<std::uint32_t> fan_out;
  for (const std::int64_t neighbours : map.list<std::int64_t>("fan_out")) {
    if (neighbours < 1 || neighbours > 10'000)
      map.report("fan_out", "is out of range", "1 to 10000 each");
    fan_out.push_back(static_cast<std::uint32_t>(neighbours));
  }
  return fan_out;
}

PartitionedGraph read_partitioned_graph(const YamlMap& map, const std::filesystem::path& folder) {
  PartitionedGraph read{.graph = read_neighbours(map, folder)};
  read.graph.make_all();
  if (const auto partition = map.map("partition")) {
    read_partition(*partition, map.has("file") ? 0 : read.graph.shape().communities, read.workers,
                   read.by);
    partition->no_other_keys();
  } else if (!map.has("partition")) {
    map.report("partition", "is missing", "partition: {workers: 8, by: random}");
  }
  return read;
}

KeyStream read_sampled(const YamlMap& map, GraphShape graph, const Shape& shape,
                       std::span<const std::uint32_t> fan_out) {
  read_communities(map, graph);
  if (!map.has("partition"))
    return map.status() ? sampled_keys(Neighbours(graph), shape, fan_out) : KeyStream{.keys = 1};
  if (is_too_large(map, graph) || !map.status()) return {.keys = 1};
  Neighbours neighbours(graph);
  neighbours.make_all();
  return sampled_by(map, neighbours, graph.communities, shape, fan_out);
}

KeyStream read_recorded_sampled(const YamlMap& map, const std::filesystem::path& folder,
                                std::uint32_t before) {
  const Neighbours graph = read_neighbours(map, folder);
  const Shape shape{.keys = graph.keys(),
                    .batch = count_in(map, "batch", graph.keys()),
                    .batches = count_in(map, "batches", 100'000'000),
                    .seed = nth_seed(1, before)};
  const std::vector<std::uint32_t> fan_out = read_fan_out(map);
  // A batch holds each key once at most.
  if (double(shape.keys) * shape.batches > kMostSampled)
    map.report("batches", fmt::format("{} batches of up to {} keys", shape.batches, shape.keys),
               fmt::format("{:g} accesses at most", kMostSampled));
  if (!map.status()) return {.keys = 1};
  if (!map.has("partition")) return sampled_keys(graph, shape, fan_out);
  return sampled_by(map, graph, 0, shape, fan_out);
}

}  // namespace rehearse::store
