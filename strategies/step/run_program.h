// Runs a program on a cluster at a fidelity: lowers it, for one rank of each program or for all,
// and runs the graph. This is the only way from a program to a step time, for predicted jobs and
// for traces.
#pragma once

#include <optional>

#include "models/job/lower.h"
#include "sim/engine/engine.h"
#include "sim/graph/timeline.h"
#include "strategies/step/fidelity.h"

namespace rehearse::step {

struct HowToRun {
  Fidelity fidelity = Fidelity::kMessage;
  bool fold = true;  ///< run one rank for all that do the same, if job::fold finds such
  engine::RunOptions engine = {};  ///< of our own engine
};

struct ProgramRun {
  job::LoweredJob lowered;
  graph::Timeline timeline;

  Seconds step() const { return timeline.makespan().seconds(); }
};

/// `rules` apply except for their fidelity. SimGrid carries messages, so it is not folded. Fails as
/// job::lower and the engines do, and if more than 2e9 messages would have to be carried.
Result<ProgramRun> run_program(const program::Program& program, const cluster::Cluster& cluster,
                               job::Rules rules, const HowToRun& how);

/// The amounts by which a step may be shorter and longer because of the prices of communication.
struct PriceReach {
  Seconds down = Seconds::s(0), up = Seconds::s(0);
  Provenance provenance = Provenance::kRecorded;  ///< the worst of the prices
};
/// The length of one graph of closed forms with its prices at their values and at the ends of their
/// intervals.
struct PriceEnds {
  Picoseconds low, value, high;
  Provenance provenance;  ///< the worst of the prices

  /// Messages under contention may be slower than any closed form, which is no error: the ends keep the
  /// same distance from a step that is run message by message.
  PriceReach reach() const;
};
/// Of a graph at closed fidelity, whose length at the values is known.
Result<PriceEnds> ends_of_prices(const job::LoweredJob& closed, Picoseconds value);
/// Lowers the program as `rules` and `fold` say, except for their fidelity.
Result<PriceEnds> ends_of_prices(const program::Program& program, const cluster::Cluster& cluster,
                                 job::Rules rules, bool fold);

}  // namespace rehearse::step
