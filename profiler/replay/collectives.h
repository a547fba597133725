// Matches device ops of different ranks that belong to one collective, and separates waiting from
// transfer.
#pragma once

#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

/// A device op of a collective, with its data: from its own record, else from the framework's
/// ranges around its launch, else from the kernel's name. In a recording without device ops, the
/// range of a host thread that communicates, as gloo and MPI do.
struct CommunicationOp {
  std::uint32_t op;  ///< a GpuIndex; of_host: a HostIndex
  std::optional<trace::Collective> what;
  Nanoseconds start{0}, end{0};
  bool of_host = false;
};

/// Returns them in order of start.
std::vector<CommunicationOp> find_communication(const Recording& recording);

/// One collective, recorded on several ranks. All members begin to move data when the last of them
/// has arrived; `transfer` is the time from then on (per member: ends differ by a few
/// microseconds).
struct MatchedCollective {
  struct Member {
    std::size_t rank;  ///< index into Trace::ranks
    std::uint32_t op;  ///< CommunicationOp::op
    Nanoseconds start, end;
    Nanoseconds transfer{0};
  };
  std::vector<Member> members;
};

struct CollectiveMatches {
  std::vector<MatchedCollective> matched;
  std::size_t unmatched = 0;  ///< communication ops that found no partner among the given ranks
};

/// Matches by group and, if the recordings number collectives, by number; else by order, verified
/// by the ends, which agree within microseconds if the clocks do. Threads of hosts end when a core
/// runs them: for those the members overlap in time. The times of a `hidden` rank are
/// ignored; its transfer time comes from the other ranks. REQUIRES: one entry of `communication`
/// per recording.
CollectiveMatches match_collectives(const std::vector<Recording>& recordings,
                                    const std::vector<std::vector<CommunicationOp>>& communication,
                                    std::optional<std::size_t> hidden = {});

}  // namespace rehearse::replay
