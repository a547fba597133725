// Networks of capacities, built by hand, as functions from two ranks to the links between them. A
// link is one capacity per direction.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/graph/graph.h"

namespace rehearse::test {

using Path = std::function<std::vector<CapacityId>(std::uint32_t from, std::uint32_t to)>;

class LinkMaker {
 public:
  LinkMaker(graph::GraphBuilder& builder, double rate)
      : builder_(&builder), rate_(rate), name_(builder.intern("link")) {}
  /// A link with `factor` times the rate of an ordinary link.
  CapacityId link(double factor = 1) {
    return builder_->add(graph::Capacity{.name = name_, .rate = rate_ * factor});
  }
  std::vector<CapacityId> links(std::size_t count, double factor = 1) {
    std::vector<CapacityId> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(link(factor));
    return all;
  }

 private:
  graph::GraphBuilder* builder_;
  double rate_;
  NameId name_;
};

/// Every rank on one switch.
inline Path star(LinkMaker make, std::uint32_t ranks) {
  const auto out = make.links(ranks), in = make.links(ranks);
  return [=](std::uint32_t from, std::uint32_t to) -> std::vector<CapacityId> {
    return {out[from], in[to]};
  };
}

/// Pairs of ranks share a switch and its one link to the root, as devices do on PCIe.
inline Path pcie_tree(LinkMaker make, std::uint32_t ranks) {
  const auto out = make.links(ranks), in = make.links(ranks);
  const auto up = make.links(ranks / 2 + 1), down = make.links(ranks / 2 + 1);
  return [=](std::uint32_t from, std::uint32_t to) -> std::vector<CapacityId> {
    if (from / 2 == to / 2) return {out[from], in[to]};
    return {out[from], up[from / 2], down[to / 2], in[to]};
  };
}

/// Leaves of four ranks with two spines, two to one oversubscribed. The pair determines the route.
inline Path fat_tree(LinkMaker make, std::uint32_t ranks) {
  constexpr std::uint32_t kPerLeaf = 4, kSpines = 2;
  const std::uint32_t leaves = (ranks + kPerLeaf - 1) / kPerLeaf;
  const auto out = make.links(ranks), in = make.links(ranks);
  const auto up = make.links(leaves * kSpines), down = make.links(leaves * kSpines);
  return [=](std::uint32_t from, std::uint32_t to) -> std::vector<CapacityId> {
    const std::uint32_t leaf = from / kPerLeaf, other = to / kPerLeaf;
    if (leaf == other) return {out[from], in[to]};
    const std::uint32_t spine = (from + to) % kSpines;
    return {out[from], up[leaf * kSpines + spine], down[other * kSpines + spine], in[to]};
  };
}

/// A two-dimensional torus, four wide: along the rows, then along the columns, the shorter way
/// round. REQUIRES: ranks divisible by four.
inline Path torus(LinkMaker make, std::uint32_t ranks) {
  constexpr std::uint32_t kWide = 4;
  const std::uint32_t high = ranks / kWide;
  const auto links = make.links(4 * std::size_t{ranks});  // per rank: +x, -x, +y, -y
  return [=](std::uint32_t from, std::uint32_t to) {
    std::vector<CapacityId> path;
    std::uint32_t x = from % kWide, y = from / kWide;
    const auto walk = [&](std::uint32_t& at, std::uint32_t goal, std::uint32_t size,
                          std::uint32_t axis) {
      while (at != goal) {
        const bool forward = (goal + size - at) % size <= size / 2;
        path.push_back(links[4 * (y * kWide + x) + 2 * axis + (forward ? 0 : 1)]);
        at = (at + (forward ? 1 : size - 1)) % size;
      }
    };
    walk(x, to % kWide, kWide, 0);
    walk(y, to / kWide, high, 1);
    return path;
  };
}

struct Network {
  std::string_view name;
  Path (*make)(LinkMaker, std::uint32_t);
};
inline constexpr Network kNetworks[] = {
    {"star", star}, {"PCIe tree", pcie_tree}, {"fat tree", fat_tree}, {"torus", torus}};

inline std::shared_ptr<const std::vector<graph::FlowRoute>> routes_on(
    const Path& path, const graph::MessageFlows& flows, Picoseconds latency,
    graph::GraphBuilder& builder) {
  auto routes = std::make_shared<std::vector<graph::FlowRoute>>();
  for (const graph::MessageFlow& flow : flows.flows())
    routes->push_back(
        {builder.add(graph::Demand{.capacities = path(flow.from, flow.to)}), latency});
  return routes;
}

}  // namespace rehearse::test
