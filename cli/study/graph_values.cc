#include <algorithm>

#include <fmt/core.h>

#include "cli/study/feed_runs.h"
#include "models/job/lower.h"
#include "models/job/roofline.h"
#include "models/store/full_graph.h"
#include "models/store/read_graph.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

std::optional<store::GraphNetwork> read_network(const YamlMap& map) {
  if (!map.has("widths")) return std::nullopt;
  store::GraphNetwork network;
  for (const std::int64_t width : map.list<std::int64_t>("widths")) {
    if (width < 1 || width > 1'000'000) {
      map.report("widths", fmt::format("{} values of a key", width), "1 to 1000000");
      return std::nullopt;
    }
    network.widths.push_back(static_cast<std::uint32_t>(width));
  }
  if (network.widths.size() < 2 || network.widths.size() > 100) {
    map.report("widths", fmt::format("{} widths", network.widths.size()),
               "the input width and the output width of each of at most 99 layers, such as [100, "
               "256, 47]");
    return std::nullopt;
  }
  if (const auto value = map.optional<Bytes>("value")) {
    if (!(value->b() >= 0.5 && value->b() <= 16))
      map.report("value", "is out of range", "0.5 B to 16 B");
    network.value = *value;
  }
  return network;
}

/// Lengths of computing by the roofline of the devices, which are of one kind.
Status set_lengths(program::Program& job, const cluster::Cluster& cluster) {
  if (cluster.devices().size() < job.ranks())
    return fail(fmt::format("{} workers on {} devices", job.ranks(), cluster.devices().size()),
                "at least one device each");
  const std::string& model = cluster.devices().front().model;
  for (const cluster::Device& device : cluster.devices())
    if (device.model != model)
      return fail(fmt::format("devices of two kinds, {} and {}", model, device.model), "one kind");
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(model));
  job::set_durations(job, {.peak = gpu.fp32, .memory = gpu.memory_rate});
  return {};
}

struct Graph {
  store::Halo halo = {};
  std::optional<store::GraphNetwork> network;
  std::optional<cluster::Cluster> cluster = {};
};

/// A step on the cluster.
Result<Term> epoch_time(const Graph& graph, step::Fidelity fidelity) {
  if (!graph.cluster) return fail("no cluster is given", "cluster: {device: …}");
  program::Program job = store::full_graph_step(graph.halo, *graph.network);
  TRY(set_lengths(job, *graph.cluster));
  const job::Rules rules = {.fidelity = fidelity == step::Fidelity::kClosed
                                            ? job::Fidelity::kClosed
                                            : job::Fidelity::kMessage};
  const job::LoweredJob lowered = TRY(job::lower(job, *graph.cluster, rules));
  const graph::Timeline timeline =
      TRY(fidelity == step::Fidelity::kSimgrid ? engine::run_on_simgrid(lowered.graph)
                                               : engine::run(lowered.graph));
  const double time = timeline.makespan().seconds().s();
  // At the roofline's speed kernels are as fast as they can be, and links as their datasheets say.
  return Term{
      {time, time * job::kFastestNetwork, time / job::kLeastOfPeak, Provenance::kDatasheet}};
}

}  // namespace

Result<FeedRun> run_graph(const YamlMap& map, const FeedContext& context) {
  Graph graph{.network = read_network(map)};
  if (map.has("cluster")) {
    graph.cluster = cluster::read_cluster(map);
    if (!graph.network && !map.has("widths"))
      map.report("widths", "is missing", "the layer widths of the network: [100, 256, 47]");
  }
  const store::PartitionedGraph read = store::read_partitioned_graph(map, context.folder());
  map.no_other_keys();
  TRY(map.status());
  graph.halo = store::halo_of(read.graph, store::partition(read.graph, read.by, read.workers));
  const double expected_halo = store::expected_halo(store::readers_of(read.graph), read.workers);
  return [graph, expected_halo,
          fidelity = context.fidelity](std::string_view function) -> Result<Term> {
    const store::Halo& halo = graph.halo;
    if (function == "cut")
      return exact(static_cast<double>(halo.cut) / static_cast<double>(halo.edges));
    if (function == "halo") return exact(static_cast<double>(halo.total()));
    if (function == "expected_halo") return exact(expected_halo);
    if (function == "fullest") {
      double keys = 0;
      for (const std::uint64_t held : halo.held) keys += static_cast<double>(held);
      return exact(static_cast<double>(std::ranges::max(halo.held)) * halo.workers / keys);
    }
    if (!graph.network) return fail("has no network, so nothing is sent", "widths: [100, 256, 47]");
    if (function == "exchanged") return exact(store::exchanged(halo, *graph.network).b());
    return epoch_time(graph, fidelity);
  };
}

}  // namespace rehearse::cli
