#include "models/comm/interference.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/check.h"

namespace rehearse::comm {

using graph::Capacity;
using graph::Demand;

namespace {

/// A held demand that takes a share of these capacities too. It flows at rate 1.
Demand with_share(Demand held, const std::map<std::optional<ServerId>, CapacityId>& capacities,
                  double share) {
  held.rate_cap = held.priority = 1;
  for (const auto& [server, capacity] : capacities) {
    held.capacities.push_back(capacity);
    held.units_per_work.push_back(share);
  }
  return held;
}

}  // namespace

Estimate<double> slowdown_by_collectives(Seconds mean_kernel) {
  constexpr double kMostLoss = 2.6;
  const double loss =
      kOverlapPenalty +
      (mean_kernel > Seconds::s(0) ? kCollectiveShare * (kPerKernel / mean_kernel) : 0);
  return {1 + loss, 1, 1 + kMostLoss * loss, Provenance::kExtrapolated};
}

void interfere(graph::GraphBuilder& graph, std::span<const DeviceOps> devices, double slowdown) {
  REHEARSE_CHECK(slowdown >= 1, "a slowdown of {}", slowdown);
  if (slowdown == 1) return;
  for (const DeviceOps& device : devices) {
    std::map<std::optional<ServerId>, CapacityId> of_server;
    for (const OpId op : device.compute) {
      Demand demand = graph.so_far().demand(op);
      auto known = of_server.find(demand.server);
      if (known == of_server.end())
        known = of_server
                    .emplace(demand.server,
                             graph.add(Capacity{.name = graph.intern("compute"), .rate = 1}))
                    .first;
      demand.capacities.push_back(known->second);
      if (!demand.units_per_work.empty()) demand.units_per_work.push_back(1);
      demand.rate_cap = std::min(demand.rate_cap, 1.0);
      if (graph.so_far().work(op) == 0) {
        graph.set_work(op, graph.so_far().duration(op).seconds().s());
        graph.set_duration(op, Picoseconds(0));
      }
      graph.set_demand(op, graph.add(std::move(demand)));
    }
    if (of_server.empty()) continue;
    std::map<std::optional<DemandId>, DemandId> holds;  // by what the op holds already
    for (const OpId op : device.communication) {
      Demand demand = graph.so_far().demand(op);
      auto known = holds.find(demand.hold);
      if (known == holds.end()) {
        const Demand before =
            demand.hold ? graph.so_far().demands()[demand.hold->index()] : Demand{};
        known =
            holds.emplace(demand.hold, graph.add(with_share(before, of_server, 1 - 1 / slowdown)))
                .first;
      }
      demand.hold = known->second;
      graph.set_demand(op, graph.add(std::move(demand)));
    }
  }
}

}  // namespace rehearse::comm
