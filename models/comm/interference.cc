#include "models/comm/interference.h"

#include <map>
#include <optional>

#include "sim/base/check.h"

namespace rehearse::comm {

using graph::Capacity;
using graph::Demand;
using graph::GraphBuilder;

Result<graph::Graph> interfere(graph::Graph graph, std::span<const DeviceOps> devices,
                               double slowdown) {
  REHEARSE_CHECK(slowdown >= 1, "a slowdown of {}", slowdown);
  if (slowdown == 1) return graph;
  GraphBuilder builder(std::move(graph));
  for (const DeviceOps& device : devices) {
    std::map<std::optional<ServerId>, CapacityId> of_server;
    for (const OpId op : device.compute) {
      Demand demand = builder.so_far().demand(op);
      auto known = of_server.find(demand.server);
      if (known == of_server.end())
        known = of_server
                    .emplace(demand.server,
                             builder.add(Capacity{.name = builder.intern("compute"), .rate = 1}))
                    .first;
      demand.capacities.push_back(known->second);
      demand.rate_cap = 1;
      builder.set_work(op, builder.so_far().duration(op).seconds().s());
      builder.set_duration(op, Picoseconds(0));
      builder.set_demand(op, builder.add(std::move(demand)));
    }
    if (of_server.empty()) continue;
    Demand taken{.rate_cap = 1 - 1 / slowdown, .priority = 1};
    for (const auto& [server, capacity] : of_server) taken.capacities.push_back(capacity);
    const DemandId hold = builder.add(std::move(taken));
    for (const OpId op : device.communication) {
      Demand demand = builder.so_far().demand(op);
      demand.hold = hold;
      builder.set_demand(op, builder.add(std::move(demand)));
    }
  }
  return std::move(builder).build();
}

}  // namespace rehearse::comm
