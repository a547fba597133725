#include "strategies/step/host_memory.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

namespace rehearse::step {
namespace {

using workload::Away;
using workload::Pass;
using workload::Stage;

bool any(const Away& away) { return away.host + away.nvme > Bytes::b(0); }

void add(Away& sum, const Away& more, double count) {
  sum.host += more.host * count;
  sum.nvme += more.nvme * count;
}

/// The memory of a rank of the stage, at its peak.
Away away_of(const Stage& stage) {
  std::vector<Away> of_chunk(stage.chunks.size());
  for (std::size_t c = 0; c < of_chunk.size(); ++c)
    for (const workload::Layer& layer : stage.chunks[c].layers)
      add(of_chunk[c], layer.away, layer.count);
  Away now, most;
  for (const workload::Slot& slot : stage.order) {
    if (slot.pass == Pass::kForward) add(now, of_chunk[slot.chunk], 1);
    if (slot.pass == Pass::kBackward) add(now, of_chunk[slot.chunk], -1);
    most.host = std::max(most.host, now.host);
    most.nvme = std::max(most.nvme, now.nvme);
  }
  add(most, stage.away, 1);
  return most;
}

double share_of(Bytes need, const std::optional<Bytes>& store) {
  if (!store || !(need > Bytes::b(0))) return 0;
  return *store > Bytes::b(0) ? need / *store : 1e9;
}

}  // namespace

double HostMemory::share() const {
  return std::max(share_of(need.host, store.memory), share_of(need.nvme, store.nvme));
}

std::optional<std::string> HostMemory::too_much() const {
  const auto words = [](Bytes bytes, const std::optional<Bytes>& of, const char* what) {
    return fmt::format("{} of {} of {}", to_string(bytes), to_string(*of), what);
  };
  if (share_of(need.host, store.memory) > 1) return words(need.host, store.memory, "memory");
  if (share_of(need.nvme, store.nvme) > 1) return words(need.nvme, store.nvme, "NVMe drives");
  return std::nullopt;
}

std::optional<HostMemory> host_memory(const workload::Layout& layout,
                                      const cluster::Cluster& cluster) {
  std::vector<Away> of_node(cluster.nodes().size());
  for (const Stage& stage : layout.stages) {
    const Away each = away_of(stage);
    if (!any(each)) continue;
    for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r)
      add(of_node[cluster.devices()[stage.rank(r)].node.index()], each, 1);
  }
  std::optional<HostMemory> fullest;
  for (std::size_t n = 0; n < of_node.size(); ++n) {
    if (!any(of_node[n])) continue;
    const cluster::Node& node = cluster.nodes()[n];
    HostMemory own{node.name, of_node[n], node.store};
    const auto order = [](const HostMemory& m) {
      return std::pair(m.share(), (m.need.host + m.need.nvme).b());
    };
    if (!fullest || order(own) > order(*fullest)) fullest = std::move(own);
  }
  return fullest;
}

}  // namespace rehearse::step
