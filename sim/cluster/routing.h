// Router: the shortest routes of a cluster, by the rules of cluster.h.
//
// Costs are whole picoseconds (latency + 1 MiB / rate of each link), so that ties are exact and
// both directions of a pair cost the same. Within a node, distances between all its vertices are
// kept, once for identical nodes. In the fabric, distances to each *core* vertex are kept: a fabric
// vertex or a portal that more than one fabric link meets (a NIC on one switch is an offset to that
// switch).
//
// A route follows decreasing distances. In a tree of switches it goes up while its links lead away
// from the nearest portal, and then down. On the way down, among tied links it takes the link with
// the same index as the link by which it went up. Each destination below a switch therefore has its
// own link if there are enough.
//
// With c core vertices in use as destinations out of n, memory is 8 c n bytes, with one Dijkstra
// each. The exits of a vertex that is the end of a route are kept too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

class Router {
 public:
  /// `turns[v]` selects which of several equally fast portals v takes, modulo their number, and
  /// which route a vertex of its node that spreads takes to it.
  Router(std::span<const Vertex> vertices, std::span<const Link> links,
         std::span<const LinkType> types, std::size_t nodes, std::vector<std::uint32_t> turns);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Nothing if no route leads there.
  std::optional<std::vector<HopId>> way(VertexId from, VertexId to) const;

  /// Two of these vertices that no route joins, if there are any.
  std::optional<std::pair<VertexId, VertexId>> apart(std::span<const VertexId> ends) const;

 private:
  using Cost = std::int64_t;

  struct Edge {
    std::uint32_t link;
    std::uint32_t to;  ///< vertex
  };

  /// The links of each vertex that one table is about, in the order in which they were added.
  struct Adjacency {
    std::vector<std::uint32_t> first;
    std::vector<Edge> edges = {};
    std::span<const Edge> of(std::uint32_t v) const {
      return {edges.data() + first[v], edges.data() + first[v + 1]};
    }
  };

  struct Portal {
    std::uint32_t vertex;
    std::uint32_t core;               ///< index of the core vertex that it is or is attached to
    std::optional<std::uint32_t> up;  ///< the link to that vertex, if it is not one itself
  };

  struct Zone {
    std::vector<std::uint32_t> vertices;
    std::vector<Portal> portals;  ///< by core
    std::uint32_t table = 0;      ///< of distances, by number
  };

  /// The portals of a vertex that reach one core vertex fastest.
  struct Exit {
    std::uint32_t core;
    Cost cost;
    std::vector<Portal> portals;
  };
  using Exits = std::vector<Exit>;  ///< by core

  template <class Keep>
  Adjacency adjacency(std::span<const Link> links, Keep keep) const;
  void find_core(std::span<const Link> links);
  void find_portals(std::span<const Vertex> vertices);
  void number_destinations();
  void measure_heights();
  void measure_nodes();
  std::vector<Cost> measure(const Zone& zone) const;

  bool passable(std::uint32_t v, std::uint32_t end) const { return v == end || forwards_[v]; }
  Cost within(const Zone& zone, std::uint32_t a, std::uint32_t b) const;
  Cost cost_to(std::uint32_t v, const Portal& portal) const;
  Exits find_exits(std::uint32_t v) const;
  const Exits& exits(std::uint32_t v) const;  ///< kept: for ends of routes
  Portal pick(std::uint32_t end, std::span<const Exit* const> tied) const;
  const Cost* to_core(std::uint32_t core) const;
  std::optional<std::pair<Portal, Portal>> choose_portals(std::uint32_t from,
                                                          std::uint32_t to) const;
  void take(std::uint32_t link, std::uint32_t from, std::vector<HopId>& hops) const;
  template <class Distance>
  void find_tied(const Adjacency& adjacency, std::uint32_t v, std::uint32_t to, Distance distance,
                 std::vector<Edge>& tied) const;
  template <class Distance>
  Edge choose_tied(const Adjacency& adjacency, std::uint32_t v, std::uint32_t to,
                   const Distance& distance, std::uint32_t& key) const;
  void cross_fabric(std::uint32_t from, std::uint32_t to, std::uint32_t key,
                    std::vector<HopId>& hops) const;
  void descend_within(std::uint32_t from, std::uint32_t to, std::vector<HopId>& hops) const;
  std::vector<std::uint32_t> islands_of(std::uint32_t v,
                                        const std::vector<std::uint32_t>& island) const;

  std::vector<Cost> cost_;                          // by link
  std::vector<std::uint32_t> end_a_;                // by link
  std::vector<char> forwards_, spread_;             // by vertex
  std::vector<std::uint32_t> turns_;                // by vertex
  std::vector<std::optional<std::uint32_t>> node_;  // by vertex
  std::vector<std::uint32_t> local_;                // by vertex: index in its node
  std::vector<std::optional<Portal>> portal_;       // by vertex: as one of the fabric
  std::vector<std::uint32_t> number_;               // by vertex: as a destination
  std::vector<std::uint32_t> core_;                 // core index -> vertex
  std::vector<std::uint32_t> height_;               // by core: links from the nearest portal
  std::vector<Zone> zones_;                         // by node
  std::vector<std::vector<Cost>> tables_;           // distances within nodes, n x n
  Adjacency inner_, fabric_;                        // links within nodes; between core vertices
  // Filled in on first use; owned.
  std::unique_ptr<std::atomic<const Cost*>[]> to_core_;
  std::unique_ptr<std::atomic<const Exits*>[]> exits_;  // by vertex
};

}  // namespace rehearse::cluster
