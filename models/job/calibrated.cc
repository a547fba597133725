#include "models/job/calibrated.h"

#include <fmt/core.h>

#include "models/comm/transfer.h"
#include "sim/base/text.h"

namespace rehearse::job {

using comm::Calibrated, comm::ClusterScope, comm::CollectiveCost;

Result<Calibrated> calibration_on(const ClusterScope& scope) {
  Calibrated calibrated = TRY(comm::calibration_for(scope.device, scope.fabric));
  TRY(comm::suits(calibrated.calibration, scope));
  return calibrated;
}

Result<CalibratedCost> cost_on(const ClusterScope& scope, const Calibrated& calibrated,
                               CollectiveKind kind, const comm::NcclOverrides& overrides) {
  CollectiveCost cost = TRY(CollectiveCost::resolve(calibrated,
                                                    {.kind = kind,
                                                     .ranks = scope.ranks,
                                                     .nodes = scope.nodes,
                                                     .network = scope.network,
                                                     .local_scale = scope.local_scale},
                                                    overrides));
  const comm::Fitted& fitted = calibrated.calibration.fitted;
  std::string source =
      fmt::format("{} rows of NCCL {}", grouped(fitted.rows),
                  fitted.nccl_version.empty() ? "of unknown version" : fitted.nccl_version);
  source += "; " + (calibrated.note.empty() ? scope.device : calibrated.note);
  if (scope.network)
    source += fmt::format("; {} nodes over {} of {}", scope.nodes, to_string(scope.network->kind),
                          to_string(scope.network->node_rate));
  for (const std::string& note : scope.notes) source += "; " + note;
  return CalibratedCost{cost, std::move(source), cost.algorithms(),
                        scope.fabric == comm::Fabric::kCubeMesh && scope.nodes == 1,
                        scope.fabric == comm::Fabric::kHostStaged};
}

Result<std::shared_ptr<const CalibratedCost>> CalibratedCosts::of(
    CollectiveKind kind, std::span<const DeviceId> devices, std::optional<Algorithm> algorithm) {
  const ClusterScope scope = TRY(scopes_.of(devices));
  Key key{kind, scope.device, scope.fabric,     scope.ranks, scope.nodes, {}, 0, 0, 0,
          0,    algorithm,    scope.local_scale};
  if (const auto& network = scope.network) {
    std::get<5>(key) = network->kind;
    std::get<6>(key) = network->node_rate.bytes_per_s();
    std::get<7>(key) = network->latency.s();
    std::get<8>(key) = network->message_cost.s();
    std::get<9>(key) = network->part;
  }
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const Result<Calibrated> calibrated = calibration_on(scope);
  Result<CalibratedCost> cost = calibrated
                                    ? cost_on(scope, *calibrated, kind, {.algorithm = algorithm})
                                    : forward(calibrated);
  Result<std::shared_ptr<const CalibratedCost>> result =
      cost ? Result<std::shared_ptr<const CalibratedCost>>(
                 std::make_shared<const CalibratedCost>(std::move(*cost)))
           : forward(cost);
  return known_.emplace(std::move(key), std::move(result)).first->second;
}

}  // namespace rehearse::job
