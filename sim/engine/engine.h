// The event loop: runs a graph and returns the start and end of each op.
//
// Promises:
//  - Determinism: the same graph gives the same timeline to the byte, regardless of other runs.
//  - Ops that become ready at the same time request their servers in the order in which the events
//    that made them ready were scheduled.
//  - Work conservation: a server with a free slot serves a waiting op (unless a lease forbids it),
//    and a capacity is used as far as the ops that flow through it can use it.
// Time is integer picoseconds; see docs/concepts/engine.md for the laws with worked examples.
#pragma once

#include <cstdint>

#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::engine {

/// In seconds. A longer time does not fit (time.h).
inline constexpr double kForever = 9e6;

/// The law by which flows share capacities (division.h).
enum class Division : std::uint8_t {
  kFair,       ///< max-min fair, with weights and priorities
  kCoflow,     ///< flows of a group end together, the shortest group first
  kEchelon,    ///< flows of a group keep to their due times
  kFirstCome,  ///< a message takes a capacity whole, in the order of asking; ops with work share
               ///< fairly
};

/// The fate of work in a capacity whose rate drops to zero.
enum class OnFailure : std::uint8_t {
  kStall,  ///< it waits, and resumes when the rate comes back
  kRetry,  ///< work in flight is lost, and sent again from the beginning
  kFail,   ///< the run ends with an error that names the capacity and the instant
};

struct RunOptions {
  Division division = Division::kFair;
  OnFailure on_failure = OnFailure::kStall;
};

/// Runs the graph from time zero until every op has ended. Fails if some op can never end, with
/// the stuck ops and what each waits for. Thread-safe: runs share nothing.
Result<graph::Timeline> run(const graph::Graph& graph, const RunOptions& options = {});

}  // namespace rehearse::engine
