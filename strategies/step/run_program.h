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
/// Runs one graph of closed forms at the ends of their intervals. It is that of the run, which is
/// `lowered` and takes `step`, if the run is at closed fidelity; otherwise the program is lowered
/// once more, as `rules` and `fold` say. Messages under contention may be slower than any closed
/// form, which is no error: the ends keep the same distance from a step that is run message by
/// message.
Result<PriceReach> reach_of_prices(const program::Program& program, const cluster::Cluster& cluster,
                                   job::Rules rules, bool fold, Fidelity fidelity,
                                   const job::LoweredJob& lowered, Seconds step);

}  // namespace rehearse::step
