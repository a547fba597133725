// Link paths: the links of messages, and the load of each link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/comm/phases.h"
#include "models/job/shared_links.h"
#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/message_flows.h"

namespace rehearse::job {

/// One member of a concurrent set: messages between devices.
struct ConcurrentGroup {
  comm::Messages messages;
  std::vector<DeviceId> devices;
  Bytes size;

  std::span<const graph::MessageFlow> flows() const { return messages.flows->flows(); }
};

/// From member 0 to member 1, all at once.
std::shared_ptr<const graph::MessageFlows> one_message();

/// The time that a link needs for the messages of groups that have a common size.
struct BottleneckTime {
  Seconds messages = Seconds::s(0);  ///< cost of the messages themselves
  Seconds byte = Seconds::s(0);      ///< per byte of the size

  Seconds of(Bytes size) const { return messages + byte * size.b(); }
  friend bool operator==(const BottleneckTime&, const BottleneckTime&) = default;
};

/// The additional bytes that have the same effect as `message_cost` for a message that moves at
/// most at that rate.
inline Bytes extra_bytes(Seconds message_cost, ByteRate path, ByteRate most) {
  return std::min(path, most) * message_cost;
}

class LinkPaths {
 public:
  /// `overhead` is added to the latency of every message. REQUIRES: `cluster` outlives this object.
  LinkPaths(const cluster::Cluster& cluster, Seconds overhead)
      : cluster_(cluster), overhead_(overhead) {}

  struct Path {
    std::pmr::vector<std::uint32_t>
        links;             ///< a number per direction; one for both of a half-duplex
    Picoseconds latency;   ///< with cluster::Route::start_up
    ByteRate rate;         ///< of the slowest of them
    Seconds message_cost;  ///< of cluster::Route
    bool steady;           ///< none of them changes over time
  };
  /// REQUIRES: devices of the cluster.
  const Path& path(DeviceId from, DeviceId to);
  ByteRate rate(std::uint32_t link) const { return rate(cluster_, link); }

  /// The number of a hop's link in Path::links, and the rate of a link with that number.
  static std::uint32_t number(const cluster::Cluster& cluster, HopId hop) {
    const LinkId link = cluster::Cluster::link_of(hop);
    return cluster.type(link).duplex == cluster::Duplex::kHalf ? 2 * link.index() : hop.index();
  }
  static ByteRate rate(const cluster::Cluster& cluster, std::uint32_t link) {
    return cluster.type(LinkId(link / 2)).rate;
  }

  /// The combined load of all groups on links, as messages of `bytes` each that last as long as the
  /// groups do. The additional cost of messages counts too, unless they are calibrated. REQUIRES:
  /// `bytes` above zero.
  std::vector<SharedLinks::Loaded> load(std::span<const ConcurrentGroup> concurrent_set,
                                        Bytes bytes);

  /// The bytes alone, as shares of the size, for groups whose size is one byte.
  std::vector<SharedLinks::Loaded> shares(std::span<const ConcurrentGroup> concurrent_set);

  /// The time that the bottleneck link needs for all of them, if their size is one byte.
  BottleneckTime bottleneck(std::span<const ConcurrentGroup> concurrent_set);

 private:
  /// By link, the sum of `work` over messages.
  template <class Work>
  std::vector<SharedLinks::Loaded> sum(std::span<const ConcurrentGroup> concurrent_set,
                                       const Work& work);

  const cluster::Cluster& cluster_;
  Seconds overhead_;
  // Tens of thousands of small pieces that are freed together.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_ =
      std::make_unique<std::pmr::monotonic_buffer_resource>();
  std::pmr::unordered_map<std::uint64_t, Path> paths_{memory_.get()};
  std::vector<double> messages_;  ///< by link; zero except while a load is summed
};

}  // namespace rehearse::job
