// Edits of a recording that need a network: other ranks, and another network for collectives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/commands/replay_job.h"
#include "models/comm/closed_form.h"

namespace rehearse::cli {

/// Whether a link is given by its numbers ("latency=5us,rate=100GB/s"), not as a file.
bool is_inline_link(std::string_view text);
/// What --network names prices collectives: a link by its numbers or in a file, as a ring of such
/// links; a file with `cluster:`, as they are priced on its first devices by every command.
Result<comm::CollectiveTime> parse_network(const std::string& text);

/// The program of one of `ranks` ranks that each do what the recording did and sum their gradients
/// on `network`. Fails on a recording that communicates already, and on one without gradients.
Result<replay::RecordedProgram> data_parallel(const ReplayJob& job, replay::RecordedProgram program,
                                              std::uint32_t ranks,
                                              const comm::CollectiveTime& network);

/// The program with its recorded collectives on `network`. Warns of those that keep their recorded
/// time because their size or number of ranks is unknown; fails where that is all of them.
Result<replay::RecordedProgram> on_network(const ReplayJob& job, replay::RecordedProgram program,
                                           const comm::CollectiveTime& network,
                                           const Globals& globals);

}  // namespace rehearse::cli
