#include "cli/commands/network_prices.h"

#include <memory>

#include "models/comm/framework_timing.h"
#include "models/comm/placement.h"
#include "models/job/group_network.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

using job::CalibratedCost;

job::Rules rules_of(const PriceRequest& request) {
  job::Rules rules;
  rules.algorithms[request.kind] = request.overrides.algorithm;
  return rules;
}

/// A collective on the devices of a cluster.
class OnCluster {
 public:
  static Result<std::shared_ptr<OnCluster>> make(const Scope& scope, const PriceRequest& request,
                                                 std::shared_ptr<const CalibratedCost> cost) {
    auto made = std::shared_ptr<OnCluster>(new OnCluster(scope, request));
    made->group_ = TRY(made->schedules_.of(request.kind, made->devices_, std::move(cost)));
    return made;
  }

  Result<Estimate<Seconds>> time(Bytes size) {
    Estimate<Seconds> closed = group_.price(size);
    if (request_.fidelity == step::Fidelity::kClosed) return closed;
    const Seconds time = TRY(run(size));
    const double longer = time / closed.value;
    return Estimate<Seconds>{time, closed.low * longer, closed.high * longer, closed.provenance};
  }

 private:
  OnCluster(const Scope& scope, const PriceRequest& request)
      : cluster_(*scope.cluster),
        devices_(scope.devices),
        request_(request),
        rules_(rules_of(request)),
        schedules_(cluster_, rules_) {}

  Result<Seconds> run(Bytes size) {
    const comm::Messages messages = TRY(schedules_.messages(group_, devices_, size));
    graph::GraphBuilder builder;
    comm::Placement placement(cluster_, builder);
    const auto routes = placement.routes(messages, devices_);
    std::vector<OpId> members;
    for (std::size_t r = 0; r < devices_.size(); ++r)
      members.push_back(builder.add(
          graph::Op{.name = builder.intern(to_string(request_.kind)),
                    .category = graph::Category::kCommunication,
                    .duration = messages.phases ? Picoseconds::from(messages.phases->launch)
                                                : Picoseconds(0)}));
    builder.add(graph::Transfer{messages.flows, routes, members, size.b()});
    const graph::Graph whole = TRY(std::move(builder).build());
    const graph::Timeline timeline =
        TRY(request_.fidelity == step::Fidelity::kSimgrid ? engine::run_on_simgrid(whole)
                                                          : engine::run(whole));
    return timeline.makespan().seconds();
  }

  const cluster::Cluster cluster_;
  const std::vector<DeviceId> devices_;
  const PriceRequest request_;
  const job::Rules rules_;
  job::Schedules schedules_;
  job::GroupSchedule group_;
};

}  // namespace

Result<PriceOfSize> prices_of(const Scope& scope, const PriceRequest& request) {
  if (request.fidelity != step::Fidelity::kClosed && !scope.cluster)
    return fail("messages need the links of a cluster", "--cluster FILE",
                "--fidelity closed prices a device by its calibration");
  std::shared_ptr<const CalibratedCost> cost;
  if (scope.calibrated) {
    Result<comm::CollectiveCost> resolved =
        comm::CollectiveCost::resolve(*scope.calibrated,
                                      {.kind = request.kind,
                                       .ranks = scope.ranks,
                                       .nodes = scope.nodes,
                                       .network = scope.network},
                                      request.overrides);
    if (!resolved && (request.fidelity == step::Fidelity::kClosed || request.overrides.protocol))
      return forward(resolved);
    if (resolved)
      cost = std::make_shared<CalibratedCost>(
          CalibratedCost{*resolved, "", resolved->algorithms(),
                         scope.calibrated->calibration.fabric == comm::Fabric::kCubeMesh});
  }
  if (!cost && request.overrides.protocol)
    return fail("--protocol needs a calibration, and none covers these links",
                "a calibrated device and calibrated links", "leave --protocol out");
  std::shared_ptr<OnCluster> on_cluster;
  if (scope.cluster) on_cluster = TRY(OnCluster::make(scope, request, cost));
  const Algorithm usual = request.overrides.algorithm.value_or(job::usual_algorithm(request.kind));
  return [on_cluster, cost, usual,
          in_framework = request.in_framework](Bytes size) -> Result<CollectivePrice> {
    std::optional<comm::Price> price;
    if (cost) price = cost->cost.at(size);
    if (on_cluster) {
      const Estimate<Seconds> time = TRY(on_cluster->time(size));
      if (!price)
        return CollectivePrice{
            .time = time, .algorithm = std::string(to_string(usual)), .protocol = ""};
      price->time = time;
    }
    if (in_framework) price = comm::in_framework(*price, comm::framework_timing());
    return CollectivePrice{.time = price->time,
                           .algorithm = std::string(to_string(price->algorithm)),
                           .protocol = std::string(to_string(price->protocol)),
                           .channels = price->channels};
  };
}

}  // namespace rehearse::cli
