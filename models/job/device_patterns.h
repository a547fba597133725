// Device patterns: sequences of devices whose messages cost the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.h"

namespace rehearse::job {

/// Describes devices by their places in nodes, and these by their kinds (Cluster::node_kinds).
/// Sequences of equal description have routes over links of the same types, shared in the same way.
class DevicePatterns {
 public:
  /// REQUIRES: the cluster outlives this object.
  explicit DevicePatterns(const cluster::Cluster& cluster)
      : cluster_(cluster), round_(cluster.nodes().size(), 0), number_(cluster.nodes().size(), 0) {}

  /// Nodes are numbered anew, by their first use.
  void clear() {
    ++current_;
    next_ = 0;
  }
  void append(std::span<const DeviceId> devices, std::vector<std::uint32_t>& key) {
    key.push_back(static_cast<std::uint32_t>(devices.size()));
    const std::span<const std::uint32_t> kinds = cluster_.node_kinds();
    for (const DeviceId device : devices) {
      if (kinds.empty()) {
        key.push_back(device.index());
        continue;
      }
      const std::size_t node = cluster_.devices()[device.index()].node.index();
      const bool first = round_[node] != current_;
      if (first) {
        round_[node] = current_;
        number_[node] = next_++;
      }
      key.push_back(number_[node]);
      if (first) key.push_back(kinds[node]);
      key.push_back(device.index() - cluster_.nodes()[node].devices.front().index());
    }
  }

 private:
  const cluster::Cluster& cluster_;
  std::vector<std::uint64_t> round_;  ///< by node: the last in which it was numbered
  std::vector<std::uint32_t> number_;
  std::uint64_t current_ = 1;
  std::uint32_t next_ = 0;
};

}  // namespace rehearse::job
