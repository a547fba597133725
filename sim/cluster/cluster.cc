#include "sim/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/cluster/routing.h"

namespace rehearse::cluster {

struct Cluster::State {
  std::vector<Node> nodes;
  std::vector<Device> devices;
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  std::vector<LinkType> types;
  std::map<std::pair<VertexId, VertexId>, std::vector<HopId>> given;  ///< routes
  std::unique_ptr<const Router> router;
  std::vector<std::uint32_t> node_kinds;
};

namespace {

Route route_over(const Cluster& cluster, std::vector<HopId> hops) {
  Seconds start_up = Seconds::s(0), message_cost = Seconds::s(0);
  PointToPoint path{Seconds::s(0), ByteRate::bytes_per_s(std::numeric_limits<double>::infinity())};
  for (const HopId hop : hops) {
    const LinkType& type = cluster.type(Cluster::link_of(hop));
    path.latency += type.latency;
    path.rate = std::min(path.rate, type.rate);
    start_up = std::max(start_up, type.message.start_up + type.message.half_rate_size / type.rate);
    message_cost = std::max(message_cost, type.message.cost);
  }
  return {std::move(hops), path, start_up, message_cost};
}

/// The second of two equal names, if there are any.
template <class Named>
const std::string* repeated_name(const std::vector<Named>& things) {
  std::set<std::string_view> seen;
  for (const Named& thing : things)
    if (!seen.insert(thing.name).second) return &thing.name;
  return nullptr;
}

Status check_type(const LinkType& type) {
  const double latency = type.latency.s();
  if (!(type.rate >= kLeastLinkRate && std::isfinite(type.rate.bytes_per_s())))
    return fail(fmt::format("the rate of '{}' is out of range", type.name),
                std::string(kLinkRates));
  if (!(latency >= 0 && latency <= 1))
    return fail(fmt::format("the latency of '{}' is out of range", type.name), "0 s to 1 s");
  for (const Seconds time : {type.message.start_up, type.message.cost})
    if (!(time >= Seconds::s(0) && time <= kMostMessageTime))
      return fail(fmt::format("the time of a message on '{}' is out of range", type.name),
                  fmt::format("0 s to {}", to_string(kMostMessageTime)));
  if (!(type.message.half_rate_size >= Bytes::b(0) &&
        type.message.half_rate_size <= kMostHalfRateSize))
    return fail(fmt::format("the half-rate size of '{}' is out of range", type.name),
                fmt::format("0 B to {}", to_string(kMostHalfRateSize)));
  return {};
}

Status check_changes(const Link& link, const std::string& name) {
  const Seconds* before = nullptr;
  for (const LinkChange& change : link.changes) {
    if (!(change.share >= 0 && change.share <= 1))
      return fail(fmt::format("a share of {} is out of range", name), "0 to 1");
    if (!std::isfinite(change.at.s()) || change.at < Seconds::s(0) ||
        (before && !(*before < change.at)))
      return fail(fmt::format("the changes of {} are out of order", name),
                  "ascending times from 0 s");
    before = &change.at;
  }
  return {};
}

/// Cluster::node_kinds. Nodes of a kind have equal vertices, equal links in equal order, and links to
/// the same switches.
std::vector<std::uint32_t> kinds_of_nodes(const Cluster::State& s) {
  if (!s.given.empty()) return {};
  using Shape = std::vector<std::uint32_t>;
  std::vector<Shape> shapes(s.nodes.size());
  std::vector<std::uint32_t> place(s.vertices.size()), ways_out(s.vertices.size(), 0);
  std::vector<std::uint32_t> count(s.nodes.size(), 0);
  std::map<std::string_view, std::uint32_t> models;
  for (std::size_t v = 0; v < s.vertices.size(); ++v) {
    const Vertex& vertex = s.vertices[v];
    if (!vertex.node) continue;
    const std::size_t node = vertex.node->index();
    place[v] = count[node]++;
    shapes[node].insert(shapes[node].end(),
                        {static_cast<std::uint32_t>(vertex.kind), vertex.forwards, vertex.spread});
  }
  for (std::size_t node = 0; node < shapes.size(); ++node) {
    shapes[node].push_back(count[node]);
    for (const DeviceId id : s.nodes[node].devices)
      shapes[node].push_back(
          models.try_emplace(s.devices[id.index()].model, static_cast<std::uint32_t>(models.size()))
              .first->second);
  }
  for (std::uint32_t i = 0; i < s.links.size(); ++i) {
    const Link& link = s.links[i];
    const auto a = s.vertices[link.a.index()].node, b = s.vertices[link.b.index()].node;
    // A vertex with two ways out may be passed by the routes of others.
    if (!a && !b) return {};
    if (a && b && a != b) return {};
    for (const VertexId end : {link.a, link.b})
      if (a != b && s.vertices[end.index()].node && ++ways_out[end.index()] > 1) return {};
    const auto end = [&](VertexId v) {
      return s.vertices[v.index()].node ? place[v.index()] : UINT32_MAX - v.index();
    };
    Shape& shape = shapes[(a ? a : b)->index()];
    shape.insert(shape.end(),
                 {end(link.a), end(link.b), link.type, link.changes.empty() ? 0 : 1 + i});
  }
  std::map<Shape, std::uint32_t> known;
  std::vector<std::uint32_t> kinds;
  for (Shape& shape : shapes)
    kinds.push_back(known.try_emplace(std::move(shape), static_cast<std::uint32_t>(known.size()))
                        .first->second);
  return kinds;
}

}  // namespace

std::span<const Node> Cluster::nodes() const { return state_->nodes; }
std::span<const Device> Cluster::devices() const { return state_->devices; }
std::span<const Vertex> Cluster::vertices() const { return state_->vertices; }
std::span<const Link> Cluster::links() const { return state_->links; }
std::span<const LinkType> Cluster::link_types() const { return state_->types; }

std::span<const std::uint32_t> Cluster::node_kinds() const { return state_->node_kinds; }

Route Cluster::route(DeviceId from, DeviceId to) const {
  REHEARSE_CHECK(from.index() < devices().size() && to.index() < devices().size(), "{} {} of {}",
                 from.index(), to.index(), devices().size());
  std::optional<Route> found = route_to(from, devices()[to.index()].vertex);
  REHEARSE_CHECK(found, "devices {} and {}", from.index(), to.index());  // invariant 2
  return std::move(*found);
}

std::optional<Route> Cluster::route_to(DeviceId from, VertexId to) const {
  REHEARSE_CHECK(from.index() < devices().size() && to.index() < vertices().size());
  const VertexId start = devices()[from.index()].vertex;
  if (const auto given = state_->given.find({start, to}); given != state_->given.end())
    return route_over(*this, given->second);
  auto hops = state_->router->way(start, to);
  if (!hops) return std::nullopt;
  return route_over(*this, std::move(*hops));
}

ClusterBuilder::ClusterBuilder() : state_(std::make_unique<Cluster::State>()) {}
ClusterBuilder::ClusterBuilder(const Cluster& cluster)
    : state_(std::make_unique<Cluster::State>()) {
  const Cluster::State& from = *cluster.state_;
  state_->nodes = from.nodes;
  state_->devices = from.devices;
  state_->vertices = from.vertices;
  state_->links = from.links;
  state_->types = from.types;
  state_->given = from.given;
}
ClusterBuilder::ClusterBuilder(ClusterBuilder&&) noexcept = default;
ClusterBuilder::~ClusterBuilder() = default;

NodeId ClusterBuilder::add_node(std::string name, HostStore store) {
  state_->nodes.push_back({std::move(name), {}, {}, store});
  return NodeId(state_->nodes.size() - 1);
}

DeviceId ClusterBuilder::add_device(NodeId node, std::string name, std::string model) {
  auto& devices = state_->devices;
  REHEARSE_CHECK(node.index() < state_->nodes.size());
  REHEARSE_CHECK(devices.empty() || devices.back().node <= node, "devices in order of their nodes");
  const DeviceId id(devices.size());
  state_->vertices.push_back(
      {.name = std::move(name), .kind = VertexKind::kDevice, .node = node, .forwards = false});
  devices.push_back({VertexId(state_->vertices.size() - 1), node, std::move(model)});
  state_->nodes[node.index()].devices.push_back(id);
  return id;
}

VertexId ClusterBuilder::add(Vertex vertex) {
  REHEARSE_CHECK(vertex.kind != VertexKind::kDevice);
  REHEARSE_CHECK(!vertex.node || vertex.node->index() < state_->nodes.size());
  const VertexId id(state_->vertices.size());
  if (vertex.kind == VertexKind::kNic && vertex.node)
    state_->nodes[vertex.node->index()].nics.push_back(id);
  state_->vertices.push_back(std::move(vertex));
  return id;
}

std::uint32_t ClusterBuilder::add(LinkType type) {
  state_->types.push_back(std::move(type));
  return static_cast<std::uint32_t>(state_->types.size() - 1);
}

std::uint32_t ClusterBuilder::add_once(LinkType type) {
  const auto known = std::ranges::find(state_->types, type);
  if (known != state_->types.end())
    return static_cast<std::uint32_t>(known - state_->types.begin());
  return add(std::move(type));
}

LinkId ClusterBuilder::connect(VertexId a, VertexId b, std::uint32_t type) {
  REHEARSE_CHECK(a.index() < state_->vertices.size() && b.index() < state_->vertices.size());
  REHEARSE_CHECK(type < state_->types.size());
  state_->links.push_back({.a = a, .b = b, .type = type});
  return LinkId(state_->links.size() - 1);
}

void ClusterBuilder::set_type(LinkId link, std::uint32_t type) {
  REHEARSE_CHECK(type < state_->types.size());
  state_->links[link.index()].type = type;
}

VertexId ClusterBuilder::vertex_of(DeviceId device) const {
  return state_->devices[device.index()].vertex;
}

std::span<const Device> ClusterBuilder::devices() const { return state_->devices; }
std::span<const Vertex> ClusterBuilder::vertices() const { return state_->vertices; }
std::span<const Link> ClusterBuilder::links() const { return state_->links; }

void ClusterBuilder::set_forwards(DeviceId device, bool forwards) {
  state_->vertices[vertex_of(device).index()].forwards = forwards;
}

void ClusterBuilder::set_changes(LinkId link, std::vector<LinkChange> changes) {
  state_->links[link.index()].changes = std::move(changes);
}

Status ClusterBuilder::set_route(DeviceId from, DeviceId to, const std::vector<LinkId>& links) {
  const auto name = [&](VertexId v) -> const std::string& {
    return state_->vertices[v.index()].name;
  };
  std::vector<HopId> hops;
  VertexId at = vertex_of(from);
  std::set<VertexId> passed = {at};
  for (const LinkId id : links) {
    const Link& link = state_->links[id.index()];
    if (link.a != at && link.b != at)
      return fail(fmt::format("the route has a gap: the link {}-{} does not start at '{}'",
                              name(link.a), name(link.b), name(at)),
                  "consecutive links");
    hops.push_back(HopId(2 * id.index() + (link.a == at ? 0 : 1)));
    at = link.a == at ? link.b : link.a;
    if (!passed.insert(at).second)
      return fail(fmt::format("the route has a cycle: it passes '{}' twice", name(at)),
                  "each vertex once");
  }
  if (at != vertex_of(to))
    return fail(fmt::format("the route ends at '{}'", name(at)),
                fmt::format("its end at '{}'", name(vertex_of(to))));
  state_->given[{vertex_of(from), at}] = std::move(hops);
  return {};
}

Result<Cluster> ClusterBuilder::build() && {
  Cluster::State& s = *state_;
  if (s.devices.empty()) return fail("the cluster has no device");
  if (const std::string* name = repeated_name(s.vertices))
    return fail(fmt::format("two vertices are called '{}'", *name), "unique names");
  if (const std::string* name = repeated_name(s.types))
    return fail(fmt::format("two link types are called '{}'", *name), "unique names");
  for (const LinkType& type : s.types) TRY(check_type(type));
  for (const Link& link : s.links) {
    const std::string name = fmt::format("the link {}-{}", s.vertices[link.a.index()].name,
                                         s.vertices[link.b.index()].name);
    if (link.a == link.b) return fail(name + " connects a vertex to itself");
    TRY(check_changes(link, name));
  }
  s.node_kinds = kinds_of_nodes(s);
  std::vector<std::uint32_t> turns(s.vertices.size(), 0);
  for (const Node& node : s.nodes) {
    for (std::uint32_t i = 0; i < node.devices.size(); ++i)
      turns[vertex_of(node.devices[i]).index()] = i;
    for (std::uint32_t i = 0; i < node.nics.size(); ++i) turns[node.nics[i].index()] = i;
  }
  s.router =
      std::make_unique<Router>(s.vertices, s.links, s.types, s.nodes.size(), std::move(turns));
  std::vector<VertexId> ends;
  for (const Device& device : s.devices) ends.push_back(device.vertex);
  if (const auto apart = s.router->apart(ends))
    return fail(
        fmt::format("there is no route from '{}' to '{}'", s.vertices[apart->first.index()].name,
                    s.vertices[apart->second.index()].name),
        "links through vertices that forward");
  return Cluster(std::shared_ptr<const Cluster::State>(std::move(state_)));
}

}  // namespace rehearse::cluster
