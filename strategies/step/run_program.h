// Runs a program on a cluster at a fidelity: lowers it, for one rank of each program or for all, and
// runs the graph. The one way from a program to a step time, for predicted jobs and for traces.
#pragma once

#include <optional>

#include "models/job/lower.h"
#include "sim/engine/engine.h"
#include "sim/graph/timeline.h"
#include "strategies/step/fidelity.h"

namespace rehearse::step {

struct HowToRun {
  Fidelity fidelity = Fidelity::kMessage;
  bool fold = true;  ///< one rank runs for all that do the same, where job::fold finds such
  engine::RunOptions engine = {};  ///< of our own engine
};

struct ProgramRun {
  job::LoweredJob lowered;
  graph::Timeline timeline;

  Seconds step() const { return timeline.makespan().seconds(); }
};

/// `rules` apply but for their fidelity. SimGrid carries messages, so that it is not folded. Fails
/// as job::lower and the engines do, and where more than 2e9 messages are to be carried.
Result<ProgramRun> run_program(const program::Program& program, const cluster::Cluster& cluster,
                               job::Rules rules, const HowToRun& how);

/// How much shorter and longer a step may be because of the prices of communication.
struct PriceReach {
  Seconds down = Seconds::s(0), up = Seconds::s(0);
  Provenance provenance = Provenance::kRecorded;  ///< the worst of the prices
};
/// From closed forms at the ends of their intervals and at their values; `value`: the last of these
/// where it is known. Messages may be slower than any closed form where they contend, which is no
/// error: the ends are as far from a step message by message.
Result<PriceReach> reach_of_prices(const program::Program& program, const cluster::Cluster& cluster,
                                   job::Rules rules, bool fold, std::optional<Seconds> value);

}  // namespace rehearse::step
