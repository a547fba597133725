// Cluster: the hardware of a job. Nodes with devices, and the fabric: links that join devices,
// switches, NICs, hosts and storage.
//
// A link has one rate per direction (kFull) or one for both together (kHalf). One direction of a
// link is a *hop*; a *route* is the list of hops of a message from one device to another.
//
// A route is the fastest path of a single message of 1 MiB:
//  - within a node, over its own links, and through the fabric only if those do not connect;
//  - between nodes, from the device to a *portal* of its node (a vertex with a link that leaves the
//    node, usually a NIC), over the fabric to a portal of the other node, and to the device. Among
//    routes of equal cost, the one that arrives nearest to the destination is taken (as NCCL's PXN
//    does on rails). Devices use several such portals in turn, by their index in the node.
// The fabric is all vertices outside of nodes, and all portals. Routes pass only through vertices
// that forward, and of a third node only through portals (a torus of devices). Among equally fast
// links, a vertex marked `spread` selects by the destination (as static D-mod-k routing does), any
// other the link added first (on a torus: the first dimension first). On its way down a tree of
// switches, a route takes the link that matches the one it took up. Given routes take precedence.
//
// Invariants of a Cluster (ClusterBuilder::build checks them):
//  1. Ids are dense; devices are numbered node by node, in the order in which they were added.
//  2. Every device can reach every other.
//  3. Rates are finite and above zero; latencies finite and not negative.
//  4. Names of vertices and of link types are unique; no link connects a vertex to itself.
//
// A Cluster is an immutable value; several threads may read it at once.
// Distances in the fabric are computed at the first request for a route to a place, and cached.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/ids.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/network_kind.h"
#include "sim/cluster/point_to_point.h"

namespace rehearse::cluster {

enum class VertexKind : std::uint8_t { kDevice, kSwitch, kNic, kHost, kStorage };

struct Vertex {
  std::string name;  ///< "node0/gpu3", "leaf1"
  VertexKind kind;
  std::optional<NodeId> node = {};  ///< absent: in the fabric between nodes
  bool forwards = true;             ///< routes may pass through
  bool spread = false;              ///< equally fast routes are chosen by destination
};

enum class Duplex : std::uint8_t { kFull, kHalf };

/// Common properties of the links of one type, with the source of the values.
struct LinkType {
  std::string name;  ///< "nvlink4", "ib_ndr_400"
  ByteRate rate;     ///< achieved by long messages
  Seconds latency;
  Duplex duplex = Duplex::kFull;
  Provenance provenance = Provenance::kDatasheet;
  std::string source;  ///< as the catalog's source column, or "given"
  MessageTimes message = {};
  std::optional<NetworkKind> network = {};  ///< between nodes; absent: not stated
  /// Measured ÷ usual time. Between nodes: of what its kind adds to a message (comm::Reach::step);
  /// within a node: of calibrated collectives.
  double step_scale = 1;

  friend bool operator==(const LinkType&, const LinkType&) = default;
};

/// From `at` on, the link carries `share` of its rate in each direction; 0: it is down.
struct LinkChange {
  Seconds at;
  double share;
};

struct Link {
  VertexId a;
  VertexId b;
  std::uint32_t type;                    ///< index into link_types()
  std::vector<LinkChange> changes = {};  ///< in order of time
};

/// The model of a device that represents the processor of a host, on a node without other devices.
/// Parameter servers may run on it.
inline constexpr std::string_view kCpu = "cpu";

struct Device {
  VertexId vertex;
  NodeId node;
  std::string
      model;  ///< name in the catalog: "h100_sxm5_80"; of a partition "a100_sxm4_40:3g.20gb"
};

/// What a node's host can hold, as far as it is known.
struct HostStore {
  std::optional<Bytes> memory = {};
  std::optional<Bytes> nvme = {};          ///< capacity of all its NVMe drives
  std::optional<ByteRate> nvme_rate = {};  ///< of all of them together, for long transfers
};

struct Node {
  std::string name;
  std::vector<DeviceId> devices;
  std::vector<VertexId> nics;
  HostStore store = {};
};

/// The hops of a message, in order.
struct Route {
  std::vector<HopId> hops;
  PointToPoint path;                     ///< sum of latencies, least rate
  Seconds start_up = Seconds::s(0);      ///< most of a link, with the time of its half-rate size
  Seconds message_cost = Seconds::s(0);  ///< most of a link
};

class Cluster {
 public:
  std::span<const Node> nodes() const;
  std::span<const Device> devices() const;
  std::span<const Vertex> vertices() const;
  std::span<const Link> links() const;
  std::span<const LinkType> link_types() const;

  const LinkType& type(LinkId link) const { return link_types()[links()[link.index()].type]; }

  /// Two hops per link: 2 i from a to b, 2 i + 1 from b to a. The hops of a half-duplex link share
  /// its rate.
  std::size_t hop_count() const { return 2 * links().size(); }
  static LinkId link_of(HopId hop) { return LinkId(hop.index() / 2); }

  /// By node, if every route uses only links of the nodes of its two ends; else empty. Nodes of equal
  /// kind can be exchanged: the routes of one, with the devices of the other in their order, use
  /// links of the same types in the same way.
  std::span<const std::uint32_t> node_kinds() const;

  /// REQUIRES: ids of this cluster. From a device to itself: no hops, no latency, infinite rate.
  Route route(DeviceId from, DeviceId to) const;
  /// From a device to any vertex, such as storage or the host of its node; nothing if no route
  /// leads there.
  std::optional<Route> route_to(DeviceId from, VertexId to) const;

  struct State;
  explicit Cluster(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  friend class ClusterBuilder;
  std::shared_ptr<const State> state_;
};

class ClusterBuilder {
 public:
  ClusterBuilder();
  /// Begins with everything that a cluster has, its ids, changes and given routes included.
  explicit ClusterBuilder(const Cluster& cluster);
  ClusterBuilder(ClusterBuilder&&) noexcept;
  ~ClusterBuilder();

  NodeId add_node(std::string name, HostStore store = {});
  /// A device that does not forward. REQUIRES: no device of a later node was added before.
  DeviceId add_device(NodeId node, std::string name, std::string model);
  /// REQUIRES: the kind is not kDevice.
  VertexId add(Vertex vertex);
  std::uint32_t add(LinkType type);
  /// Returns an equal type that was added before, else adds this one.
  std::uint32_t add_once(LinkType type);
  LinkId connect(VertexId a, VertexId b, std::uint32_t type);
  void set_type(LinkId link, std::uint32_t type);
  VertexId vertex_of(DeviceId device) const;
  std::span<const Device> devices() const;
  std::span<const Vertex> vertices() const;
  std::span<const Link> links() const;
  void set_forwards(DeviceId device, bool forwards);
  void set_changes(LinkId link, std::vector<LinkChange> changes);
  /// Sets the route of messages between the two devices, in this direction only. Fails if the links
  /// leave a gap, pass a vertex twice or end elsewhere.
  Status set_route(DeviceId from, DeviceId to, const std::vector<LinkId>& links);

  /// Fails with one line if there is no device, if a rate is out of range, or if two devices have
  /// no path between them.
  Result<Cluster> build() &&;

 private:
  std::unique_ptr<Cluster::State> state_;
};

}  // namespace rehearse::cluster
