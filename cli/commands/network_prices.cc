#include "cli/commands/network_prices.h"

#include <memory>
#include <span>

#include <fmt/core.h>

#include "models/comm/framework_timing.h"
#include "models/comm/placement.h"
#include "models/job/group_network.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

using job::CalibratedCost;

job::Rules rules_of(const PriceRequest& request) {
  job::Rules rules{.calibrated = true};
  rules.algorithms[request.kind] = request.overrides.algorithm;
  return rules;
}

/// A collective on the devices of a cluster.
class OnCluster {
 public:
  static Result<std::shared_ptr<OnCluster>> make(const Scope& scope, const PriceRequest& request,
                                                 std::shared_ptr<const CalibratedCost> cost) {
    auto made = std::shared_ptr<OnCluster>(new OnCluster(scope, request));
    job::GroupSchedule& group = made->group_ =
        TRY(made->schedules_.of(request.kind, made->devices_, std::move(cost)));
    if (!group.shares_links()) return made;
    const job::ConcurrentGroup alone{
        TRY(made->schedules_.messages(group, made->devices_, Bytes::b(1))), made->devices_,
        Bytes::b(1)};
    group.bottleneck_link = job::LinkPaths(made->cluster_, made->rules_.message_overhead)
                                .bottleneck(std::span(&alone, 1));
    return made;
  }

  const job::GroupSchedule& group() const { return group_; }

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
    return fail(fmt::format("the catalog has no '{}', and messages need the links of a cluster",
                            scope.on.device),
                "--cluster FILE", "--fidelity closed prices a device by its calibration");
  std::shared_ptr<const CalibratedCost> cost;
  if (scope.named || request.overrides.protocol || !scope.cluster) {
    const comm::Calibrated calibrated = TRY(scope.calibrated);
    cost = std::make_shared<CalibratedCost>(
        TRY(job::cost_on(scope.on, calibrated, request.kind, request.overrides)));
  }
  std::shared_ptr<OnCluster> on_cluster;
  std::string why_not;
  if (scope.cluster) {
    on_cluster = TRY(OnCluster::make(scope, request, cost));
    cost = on_cluster->group().calibrated;
    why_not = on_cluster->group().why_not;
  }
  const Algorithm usual = request.overrides.algorithm.value_or(job::usual_algorithm(request.kind));
  const auto of = [on_cluster, cost, usual,
                   in_framework = request.in_framework](Bytes size) -> Result<CollectivePrice> {
    CollectivePrice price{on_cluster ? TRY(on_cluster->time(size)) : cost->cost.at(size).time,
                          std::string(to_string(usual)), ""};
    if (cost) {
      const comm::Price calibrated = cost->cost.at(size);
      price.algorithm = to_string(calibrated.algorithm);
      price.protocol = to_string(calibrated.protocol);
      price.channels = calibrated.channels;
    }
    if (in_framework) price.time = comm::in_framework(price.time, comm::framework_timing());
    return price;
  };
  return PriceOfSize{of, std::move(why_not)};
}

}  // namespace rehearse::cli
