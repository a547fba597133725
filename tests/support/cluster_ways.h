// Routes of clusters in a form that tests can check.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace rehearse::test {

/// The cluster; if there is an error, fails the test with it.
cluster::Cluster built(Result<cluster::ClusterBuilder> builder);

/// "node0/gpu0 node0/nvswitch node0/gpu1": the vertices of a route from one device to another.
/// Fails the test if its links are not consecutive.
std::string way(const cluster::Cluster& cluster, std::uint32_t from, std::uint32_t to);
std::string way(const cluster::Cluster& cluster, std::uint32_t from, const cluster::Route& route);

/// A link type for tests.
cluster::LinkType link_type(std::string name, double gb_per_s, double latency_us);

}  // namespace rehearse::test
