// Edits that need more than the recording: other ranks and the network between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/commands/replay_job.h"
#include "sim/cluster/point_to_point.h"

namespace rehearse::cli {

/// Whether a link is given by its numbers ("latency=5us,rate=100GB/s"), not as a file.
bool is_inline_link(std::string_view text);
/// A link as --network takes it: the numbers themselves, or a file that has them.
Result<cluster::PointToPoint> parse_network(const std::string& text);

/// The graph of one of `ranks` ranks that each do what the recording did and sum their gradients
/// over `link`. Fails on a recording that communicates already, and on one without gradients.
Result<replay::ReplayGraph> data_parallel(const ReplayJob& job, const replay::ReplayGraph& replay,
                                          std::uint32_t ranks, const cluster::PointToPoint& link);

/// The graph with its recorded collectives over `link`. Warns of those that keep their recorded
/// time because their size or number of ranks is unknown; fails where that is all of them.
Result<replay::ReplayGraph> on_network(const ReplayJob& job, const replay::ReplayGraph& replay,
                                       const cluster::PointToPoint& link, const Globals& globals);

}  // namespace rehearse::cli
