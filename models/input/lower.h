// From a pipeline to ops and edges: what the engine runs, alone or in front of a training step.
//
// A visit is one op for each of its parts: the wait for a request to be admitted, the read, the
// work on a core, the serial part. A stage whose visits are one op is a server with a slot per
// thread; where they are several, a visit of a worker waits until all but threads - 1 of those
// before it have ended, whichever they are. A bounded queue is an edge from the end of take k to
// the begin of the take that would overfill what lies before it. docs/concepts/input.md.
#pragma once

#include <cstdint>
#include <vector>

#include "models/input/pipeline.h"
#include "sim/graph/graph.h"

namespace rehearse::input {

struct Lowered {
  std::vector<OpId> units = {};  ///< the op with which each unit of the last stage is there (or
                                 ///< used up by the accelerator, where there is one)
  std::vector<std::vector<OpId>> work = {};  ///< of each stage, the ops that hold its threads
};

enum class Start : std::uint8_t {
  kTogether,  ///< all threads of a stage begin at once
  kSpread,    ///< evenly over the time of one visit, as they end up where times vary a little:
              ///< together, constant times would keep them waiting and reading in step for ever
};

/// Adds what makes the first `units` units of the last stage. Random times are drawn by the
/// pipeline's seed, in an order of their own for each stage. `asked`: for each unit, the op of the
/// graph with whose end it is asked for; it leaves the queue of the last stage then, or when it is
/// there. Empty: units leave it as soon as they are there.
/// REQUIRES: `asked` only of a pipeline without an accelerator of its own.
Lowered lower(const Pipeline& pipeline, std::uint64_t units, Start start,
              graph::GraphBuilder& builder, const std::vector<OpId>& asked = {});

/// Units of stage i that can be in its own hands, waiting behind it, and in the hands of the next.
std::uint64_t room_behind(const std::vector<Stage>& stages, std::size_t i);

/// Units of the last stage that all queues and hands hold together.
double units_in_flight(const Pipeline& pipeline, const Counts& counts);

/// Of the ops of a visit those that choose among the last rounds of its worker's threads: with many
/// threads they are the most of the work.
double ops_to_choose(const Stage& stage);

/// Ops that `lower` would add, roughly: for refusing what would take too long.
double ops_of(const Pipeline& pipeline, double units);

}  // namespace rehearse::input
