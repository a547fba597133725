// The graphs that engines are timed on.
#pragma once

#include <cstdint>

#include "sim/graph/graph.h"

namespace rehearse::bench {

/// `streams` chains of kernels; every fifth op of a chain also waits for the op before it in time
/// on the next chain, as a kernel waits for a collective. Ops of one stream are consecutive.
inline graph::Graph training_step(std::size_t ops, std::size_t streams) {
  using namespace graph;
  GraphBuilder builder;
  const NameId name = builder.intern("kernel");
  std::vector<DemandId> demand;
  for (std::size_t s = 0; s < streams; ++s)
    demand.push_back(builder.add(Demand{.server = builder.add(Server{.name = name})}));
  const std::size_t length = ops / streams;
  const auto id = [&](std::size_t stream, std::size_t k) { return OpId(stream * length + k); };
  std::uint32_t random = 12345;
  builder.reserve(ops, ops + ops / 4);
  for (std::size_t s = 0; s < streams; ++s)
    for (std::size_t k = 0; k < length; ++k) {
      random = random * 1664525u + 1013904223u;
      builder.add(Op{.name = name,
                     .category = Category::kCompute,
                     .duration = Picoseconds(1'000'000 + (random >> 8)),
                     .demand = demand[s]});
    }
  for (std::size_t s = 0; s < streams; ++s)
    for (std::size_t k = 1; k < length; ++k) {
      builder.add_edge(id(s, k - 1), id(s, k));
      if (k % 5 == 4 && streams > 1) builder.add_edge(id((s + 1) % streams, k - 1), id(s, k));
    }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

/// Ops of eight priorities that all request one of `servers` at time zero, so that queues have
/// their maximum length.
inline graph::Graph long_queues(std::size_t ops, std::size_t servers, graph::Policy policy) {
  using namespace graph;
  GraphBuilder builder;
  const NameId name = builder.intern("request");
  std::vector<DemandId> demand;
  for (std::size_t s = 0; s < servers; ++s) {
    const ServerId server = builder.add(Server{.name = name, .slots = 2, .policy = policy});
    for (std::int32_t priority = 0; priority < 8; ++priority)
      demand.push_back(builder.add(Demand{.server = server, .priority = priority}));
  }
  std::uint32_t random = 4242;
  for (std::size_t i = 0; i < ops; ++i) {
    random = random * 1664525u + 1013904223u;
    builder.add(Op{.name = name,
                   .category = Category::kCompute,
                   .duration = Picoseconds(1'000'000 + (random >> 8)),
                   .demand = demand[(random >> 4) % demand.size()]});
  }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

/// `flows` transfers over `links` links in `classes` routes, all in flight together. Each route has
/// flows of many sizes, so that they finish one by one.
inline graph::Graph shared_links(std::size_t flows, std::size_t classes, std::size_t links) {
  using namespace graph;
  GraphBuilder builder;
  const NameId name = builder.intern("flow");
  std::vector<CapacityId> link;
  for (std::size_t i = 0; i < links; ++i)
    link.push_back(builder.add(Capacity{.name = name, .rate = 1e9 * static_cast<double>(i + 1)}));
  std::vector<DemandId> route;
  for (std::size_t c = 0; c < classes; ++c)
    route.push_back(builder.add(Demand{.capacities = {link[c % links], link[(c * 7 + 1) % links]},
                                       .weight = 1 + static_cast<double>(c)}));
  std::uint32_t random = 777;
  for (std::size_t i = 0; i < flows; ++i) {
    random = random * 1664525u + 1013904223u;
    builder.add(Op{.name = name,
                   .category = Category::kCommunication,
                   .duration = Picoseconds(static_cast<std::int64_t>(i)),
                   .demand = route[i % classes],
                   .work = 1e6 + (random >> 8)});
  }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

}  // namespace rehearse::bench
