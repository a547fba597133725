#include "models/job/calibrated.h"

#include <fmt/core.h>

#include "models/comm/transfer.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::job {
namespace {

using cluster::Cluster;
using comm::Calibrated;
using comm::ClusterScope;
using comm::CollectiveCost;

bool is_of_catalog(const cluster::LinkType& type) {
  std::string_view name = type.name;
  constexpr std::string_view kDouble = "_x2";  // two links of a kind between a pair
  if (name.ends_with(kDouble)) name.remove_suffix(kDouble.size());
  const auto row = cluster::find_link(name);
  return row && type.source.starts_with((*row)->origin.source);
}

/// The links between two devices of a node are as the catalog has them.
Status check_links(const Cluster& cluster, DeviceId a, DeviceId b) {
  for (const HopId hop : cluster.route(a, b).hops)
    if (const cluster::LinkType& type = cluster.type(Cluster::link_of(hop)); !is_of_catalog(type))
      return fail(fmt::format("link type '{}' is not the one that was measured on", type.name));
  return {};
}

Result<CalibratedCost> resolve(const ClusterScope& scope, CollectiveKind kind) {
  const Result<Calibrated> calibrated = comm::calibration_for(scope.device);
  if (!calibrated) return forward(calibrated);
  if (Status ok = comm::suits(calibrated->calibration, scope); !ok) return forward(ok);
  Result<CollectiveCost> cost = CollectiveCost::resolve(
      *calibrated,
      {.kind = kind, .ranks = scope.ranks, .nodes = scope.nodes, .network = scope.network});
  if (!cost) return forward(cost);
  const comm::Fitted& fitted = calibrated->calibration.fitted;
  std::string source =
      fmt::format("{} rows of NCCL {}", grouped(fitted.rows),
                  fitted.nccl_version.empty() ? "of unknown version" : fitted.nccl_version);
  source += "; " + (calibrated->note.empty() ? scope.device : calibrated->note);
  if (scope.network)
    source += fmt::format("; {} nodes over {} of {}", scope.nodes, to_string(scope.network->kind),
                          to_string(scope.network->node_rate));
  for (const std::string& note : scope.notes) source += "; " + note;
  return CalibratedCost{std::move(*cost), std::move(source)};
}

}  // namespace

Result<ClusterScope> CalibratedCosts::scope_of(std::span<const DeviceId> devices) const {
  Result<ClusterScope> scope = comm::scope_of(cluster_, devices);
  if (!scope) return forward(scope);
  if (scope->network) {
    const NodeId node = cluster_.devices()[devices.front().index()].node;
    const std::size_t on_node = cluster_.nodes()[node.index()].devices.size();
    const double share = static_cast<double>(scope->ranks) /
                         (static_cast<double>(scope->nodes) * static_cast<double>(on_node));
    scope->network->node_rate = scope->network->node_rate * share;
  }
  for (std::size_t i = 1; i < devices.size(); ++i)
    if (cluster_.devices()[devices[i - 1].index()].node ==
        cluster_.devices()[devices[i].index()].node)
      if (Status ok = check_links(cluster_, devices[i - 1], devices[i]); !ok) return forward(ok);
  return scope;
}

Result<std::shared_ptr<const CalibratedCost>> CalibratedCosts::of(
    CollectiveKind kind, std::span<const DeviceId> devices) {
  const Result<ClusterScope> scope = scope_of(devices);
  if (!scope) return forward(scope);
  Key key{kind, scope->device, scope->fabric, scope->ranks, scope->nodes, {}, 0, 0};
  if (const auto& network = scope->network) {
    std::get<5>(key) = network->kind;
    std::get<6>(key) = network->node_rate.bytes_per_s();
    std::get<7>(key) = network->latency.s();
  }
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  Result<CalibratedCost> cost = resolve(*scope, kind);
  Result<std::shared_ptr<const CalibratedCost>> result =
      cost ? Result<std::shared_ptr<const CalibratedCost>>(
                 std::make_shared<const CalibratedCost>(std::move(*cost)))
           : forward(cost);
  return known_.emplace(std::move(key), std::move(result)).first->second;
}

}  // namespace rehearse::job
