// A cluster as a self-contained SVG drawing.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"

namespace rehearse::cli {

/// Nodes as boxes below the fabric's switches, links coloured by their type, a legend with rate,
/// latency and source. Of many nodes or switches that are alike a few are drawn, with their number.
std::string cluster_svg(const cluster::Cluster&, const std::string& title);

}  // namespace rehearse::cli
