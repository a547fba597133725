// A fat tree of single links and static routing, as a cluster file can list it: each switch below
// the top selects a link up by the destination (D-mod-k).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/cluster_ways.h"

namespace rehearse::test {

/// Nodes of one device each, `down` of them per leaf. A leaf has `up` links, a switch of a higher
/// level as many up as down. The highest level has as few switches as their ports allow.
struct StaticFatTree {
  std::uint32_t nodes, levels, down, up;
  double gb_per_s = 20;

  cluster::Cluster build() const {
    using namespace cluster;
    ClusterBuilder builder;
    const std::uint32_t type = builder.add(link_type("cable", gb_per_s, 0));
    const std::uint32_t radix = down + up;
    const auto add_switch = [&](const std::string& name, bool spread) {
      return builder.add({.name = name, .kind = VertexKind::kSwitch, .node = {}, .spread = spread});
    };
    std::vector<std::vector<VertexId>> blocks;  // a switch per free port
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const std::string name = std::to_string(i);
      const DeviceId device = builder.add_device(builder.add_node("n" + name), "d" + name, "gpu");
      if (i % down == 0) blocks.emplace_back(up, add_switch("leaf" + name, true));
      builder.connect(builder.vertex_of(device), blocks.back().front(), type);
    }
    for (std::uint32_t level = 2; level <= levels; ++level) {
      const bool top = level == levels;
      const std::size_t together = top ? blocks.size() : radix / 2;
      std::vector<std::vector<VertexId>> larger;
      for (std::size_t first = 0; first < blocks.size(); first += together) {
        const std::size_t last = std::min(first + together, blocks.size());
        const std::size_t slots = blocks[first].size();
        const std::size_t count = top ? (slots * (last - first) + radix - 1) / radix : slots;
        std::vector<VertexId> above;
        for (std::size_t i = 0; i < count; ++i)
          above.push_back(add_switch("level" + std::to_string(level) + "_" + std::to_string(first) +
                                         "_" + std::to_string(i),
                                     !top));
        for (std::size_t b = first; b < last; ++b)
          for (std::size_t slot = 0; slot < slots; ++slot)
            builder.connect(blocks[b][slot], above[slot % count], type);
        std::vector<VertexId>& block = larger.emplace_back();
        for (const VertexId one : above) block.insert(block.end(), radix / 2, one);
      }
      blocks = std::move(larger);
    }
    return built(std::move(builder));
  }
};

}  // namespace rehearse::test
