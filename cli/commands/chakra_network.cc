#include "cli/commands/chakra_network.h"

#include <algorithm>

#include "sim/cluster/astra_network.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

/// Levels of a cluster: the devices of a node, and the nodes.
std::vector<std::uint32_t> levels_of(const cluster::Cluster& cluster) {
  const std::size_t each = cluster.nodes().front().devices.size(), nodes = cluster.nodes().size();
  std::vector<std::uint32_t> levels;
  for (const std::size_t size : {each, nodes})
    if (size > 1) levels.push_back(static_cast<std::uint32_t>(size));
  const bool even =
      std::all_of(cluster.nodes().begin(), cluster.nodes().end(),
                  [&](const cluster::Node& node) { return node.devices.size() == each; });
  return even ? levels : std::vector<std::uint32_t>{};
}

}  // namespace

Result<ChakraNetwork> load_network(const std::filesystem::path& cluster,
                                   const std::filesystem::path& astra_network) {
  if (astra_network.empty()) {
    Result<cluster::Cluster> read = cluster::load_cluster(cluster);
    if (!read) return forward(read);
    std::vector<std::uint32_t> levels = levels_of(*read);
    return ChakraNetwork{std::move(*read), std::move(levels)};
  }
  Result<cluster::AstraNetwork> read = cluster::load_astra_network(astra_network);
  if (!read) return forward(read);
  return ChakraNetwork{std::move(read->cluster), std::move(read->dimensions)};
}

void set_astra_rules(const ingest::AstraSystem& system, std::size_t dimensions, job::Rules& rules,
                     std::vector<Warning>& warnings) {
  const auto named = [](std::string_view name) {
    return static_cast<Algorithm>(std::find(kAlgorithmNames.begin(), kAlgorithmNames.end(), name) -
                                  kAlgorithmNames.begin());
  };
  rules.algorithms = job::wherever_possible(named(system.reduction));
  rules.algorithms[CollectiveKind::kAllToAll] = named(system.exchange);
  rules.message_overhead = system.endpoint_delay;
  rules.calibrated = false;
  // A rank has one communication op in flight. If parts of a collective overlap on different
  // dimensions, each dimension needs a stream instead.
  rules.one_stream = dimensions < 2 || system.collectives.one_ring;
  if (system.last_first)
    warnings.push_back(
        {"scheduling-policy LIFO is not supported: collectives waiting for a dimension run in "
         "order of issue",
         "scheduling-policy FIFO"});
}

}  // namespace rehearse::cli
