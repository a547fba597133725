// Lowers a pipeline to a service of a program, which runs alone or feeds the program's ranks.
//
// A visit is one op for each of its parts: the wait for a request to be admitted, the read, the
// work on a core, the serial part. A stage whose visits are one op is a server with a slot per
// thread. With several ops, a visit of a worker waits until all but threads - 1 of its earlier ones
// have ended. A bounded queue is an edge from the end of take k to the start of the take that would
// overfill it. A closed loop is an edge from consumed samples to the takes that they admit. See
// docs/concepts/input.md.
#pragma once

#include <cstdint>
#include <vector>

#include "models/input/pipeline.h"
#include "sim/program/program.h"

namespace rehearse::input {

using program::OpIndex;  // here: of the service

/// An op that holds a thread, for the visit with this number.
struct Held {
  OpIndex op;
  std::uint64_t visit;
};

/// The op at which its batch is complete, and the samples that might be in it.
struct Round {
  OpIndex filled;
  std::vector<OpIndex> came;
};

/// An op that may begin only when unit `unit` has been requested.
struct Requested {
  OpIndex op;
  std::uint64_t unit;
};

struct Lowered {
  std::vector<OpIndex> units = {};  ///< the op that makes each unit of the last stage ready (or
                                    ///< used up by the accelerator, where there is one)
  std::vector<std::vector<Held>> work = {};  ///< by stage, the ops that hold its threads
  std::vector<Round> rounds = {};            ///< one for each unit, where the loop has rounds
  std::vector<Requested> requested = {};     ///< where units are requested
};

enum class Start : std::uint8_t {
  kTogether,  ///< all threads of a stage begin at once
  kSpread,    ///< evenly over the time of one visit, as they end up where times vary a little:
              ///< together, constant times would keep them waiting and reading in step for ever
};

/// Adds a service with the ops of the first `units` units of the last stage. With `requests`, units
/// are used up as others request them, and not as soon as they are ready. Random times are drawn by
/// the pipeline's seed, in a separate order for each stage. Fails if too few samples are in flight
/// for one unit.
Result<Lowered> lower(const Pipeline& pipeline, std::uint64_t units, Start start,
                      program::Program& into, bool requests = false);

/// The units of the last stage that all queues and stages can hold together, or that the loop
/// admits.
double units_in_flight(const Pipeline& pipeline, const Counts& counts);

/// Units of stage i that can be in progress, waiting in its queue, and in progress in the next
/// stage.
std::uint64_t room_after(const std::vector<Stage>& stages, std::size_t i);

/// The number of ops per visit that choose among the last rounds of its worker's threads. With many
/// threads, most of the work is theirs.
double ops_to_choose(const Stage& stage);

/// The approximate number of ops that `lower` would add, so that long runs can be refused.
double ops_of(const Pipeline& pipeline, double units);

}  // namespace rehearse::input
