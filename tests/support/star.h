// A star: every rank has a port with one rate in each direction, and a message between two ranks
// uses the sender's output and the receiver's input. It is the network that closed forms assume.
#pragma once

#include <memory>
#include <vector>

#include "sim/cluster/point_to_point.h"
#include "sim/graph/graph.h"

namespace rehearse::test {

class Star {
 public:
  Star(graph::GraphBuilder& builder, std::uint32_t ranks, const cluster::PointToPoint& path)
      : builder_(builder), latency_(Picoseconds::from(path.latency)) {
    for (std::uint32_t r = 0; r < 2 * ranks; ++r)
      ports_.push_back(builder.add(
          graph::Capacity{.name = builder.intern("port"), .rate = path.rate.bytes_per_s()}));
  }

  graph::FlowRoute route(std::uint32_t from, std::uint32_t to) {
    const std::size_t ranks = ports_.size() / 2;
    return {builder_.add(graph::Demand{.capacities = {ports_[from], ports_[ranks + to]}}),
            latency_};
  }

  std::shared_ptr<const std::vector<graph::FlowRoute>> routes(const graph::MessageFlows& flows) {
    auto routes = std::make_shared<std::vector<graph::FlowRoute>>();
    for (const graph::MessageFlow& flow : flows.flows())
      routes->push_back(route(flow.from, flow.to));
    return routes;
  }

 private:
  graph::GraphBuilder& builder_;
  Picoseconds latency_;
  std::vector<CapacityId> ports_;
};

/// Adds a transfer among ops of no duration and returns the ops.
inline std::vector<OpId> add_transfer(graph::GraphBuilder& builder,
                                      std::shared_ptr<const graph::MessageFlows> flows,
                                      std::shared_ptr<const std::vector<graph::FlowRoute>> routes,
                                      double size) {
  std::vector<OpId> members;
  for (std::uint32_t m = 0; m < flows->members(); ++m)
    members.push_back(builder.add(graph::Op{.name = builder.intern("member"),
                                            .category = graph::Category::kCommunication,
                                            .duration = Picoseconds(0)}));
  builder.add(graph::Transfer{std::move(flows), std::move(routes), members, size});
  return members;
}

}  // namespace rehearse::test
