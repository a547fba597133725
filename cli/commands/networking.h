// Edits of a recording that need a network: other ranks, and another network for collectives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/commands/replay_job.h"
#include "models/comm/closed_form.h"
#include "sim/cluster/point_to_point.h"

namespace rehearse::cli {

/// Whether a link is given by its numbers ("latency=5us,rate=100GB/s"), not as a file.
bool is_inline_link(std::string_view text);
/// Whether the text can be a link; the contents of a file are checked later.
Status check_link(const std::string& text);
/// The link that the text gives, by its numbers or as a file.
Result<cluster::PointToPoint> read_link(const std::string& text);
/// The prices of collectives that --network names. A link, given by its numbers or in a file, is
/// priced as a ring of such links. A file with `cluster:` is priced on its first devices, as in
/// every other command.
Result<comm::CollectiveTime> parse_network(const std::string& text);

/// The program with `ranks` ranks that all do the recorded work, with gradients summed on
/// `network` in buckets of at least `bucket`. Fails if the recording communicates already, or has no gradients.
Result<replay::RecordedProgram> data_parallel(const ReplayJob& job, replay::RecordedProgram program,
                                              std::uint32_t ranks, Bytes bucket,
                                              const comm::CollectiveTime& network);

/// The program with its recorded collectives on `network`. Warns of collectives that keep their
/// recorded time because their size or number of ranks is unknown; fails if that is true of all.
Result<replay::RecordedProgram> on_network(const ReplayJob& job, replay::RecordedProgram program,
                                           const comm::CollectiveTime& network,
                                           const Globals& globals);

}  // namespace rehearse::cli
