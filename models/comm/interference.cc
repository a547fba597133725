#include "models/comm/interference.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/check.h"

namespace rehearse::comm {

using graph::Capacity;
using graph::Demand;

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
    Demand taken{.rate_cap = 1 - 1 / slowdown, .priority = 1};
    for (const auto& [server, capacity] : of_server) taken.capacities.push_back(capacity);
    const DemandId hold = graph.add(std::move(taken));
    for (const OpId op : device.communication) {
      Demand demand = graph.so_far().demand(op);
      demand.hold = hold;
      graph.set_demand(op, graph.add(std::move(demand)));
    }
  }
}

}  // namespace rehearse::comm
