#include "cli/recommending/stalls.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/config/job_input.h"
#include "sim/cluster/instance_shape.h"
#include "sim/cluster/one_per_node.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

/// A single node needs no network, so the network of its instance is used; nothing if that is
/// unknown.
Result<std::optional<cluster::Cluster>> on_its_network(std::span<const cost::Rented> rented) {
  if (rented.size() != 1 || rented.front().count != 1) return std::nullopt;
  const std::string& name = rented.front().instance;
  const cluster::InstanceShape shape = TRY(cluster::shape_of_instance(name));
  if (!shape.nic) return std::nullopt;
  return cluster::parse_cluster(
      fmt::format("cluster: {{instance: \"{}\", count: 1, inter_node: switch}}", name), name);
}

}  // namespace

Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity) {
  const Seconds alone = step.time.value - step.occupancy.input;
  const auto time_with = [&](cluster::LinkPart part) -> Result<Seconds> {
    const step::Step other =
        TRY(step::predict(spec, cluster::with_ideal_links(cluster, part),
                          {.fidelity = fidelity, .value_only = true, .timeline = false}));
    return std::min(other.time.value, alone);
  };
  if (step.layout.ranks() == 1)
    return cost::Stalls{.interconnect = Seconds::s(0), .network = Seconds::s(0)};
  const Seconds within = TRY(time_with(cluster::LinkPart::kWithinNodes));
  if (cluster.nodes().size() == 1)
    return cost::Stalls{.interconnect = alone - within, .network = Seconds::s(0)};
  const Seconds all = TRY(time_with(cluster::LinkPart::kAll));
  const Seconds least = std::min(all, within);
  return cost::Stalls{.interconnect = alone - within, .network = within - least};
}

Result<std::optional<Seconds>> node_sharing(const step::Spec& spec, const cluster::Cluster& cluster,
                                            std::span<const cost::Rented> rented,
                                            const step::Step& step, step::Fidelity fidelity) {
  const bool shared = std::ranges::any_of(cluster.nodes(),
                                          [](const auto& node) { return node.devices.size() > 1; });
  if (!shared || step.layout.ranks() == 1) return Seconds::s(0);
  std::optional<cluster::Cluster> joined = cluster;
  const bool alone = cluster.nodes().size() == 1 && cluster.nodes().front().nics.empty();
  if (alone) {
    std::optional<cluster::Cluster> found = TRY(on_its_network(rented));
    if (!found) return std::nullopt;
    joined = std::move(found);
  }
  const cluster::Cluster apart = TRY(cluster::with_one_device_per_node(*joined));
  const step::Step other = TRY(
      step::predict(spec, apart, {.fidelity = fidelity, .value_only = true, .timeline = false}));
  return step.time.value - step.occupancy.input - other.time.value;
}

Status add_input_stalls(const input::Feed& free, const cluster::Cluster& cluster,
                        const step::Step& step, cost::Stalls& stalls) {
  const Seconds alone = step.time.value - step.occupancy.input;
  stalls.input = step.occupancy.input;
  stalls.fetch = Seconds::s(0);
  if (!(*stalls.input > Seconds::s(0))) return {};
  const Seconds with_free_reads = TRY(fed_time(free, cluster, step.layout, alone));
  stalls.fetch = std::max(Seconds::s(0), step.time.value - with_free_reads);
  return {};
}

}  // namespace rehearse::cli
