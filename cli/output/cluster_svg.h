// A cluster as a self-contained SVG drawing.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"

namespace rehearse::cli {

/// Draws nodes as boxes below the fabric's switches, links coloured by type, and a legend with
/// rate, latency and source. Of many identical nodes or switches, it draws a few with their count.
std::string cluster_svg(const cluster::Cluster&, const std::string& title);

}  // namespace rehearse::cli
