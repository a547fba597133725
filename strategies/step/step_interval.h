// The interval of a predicted step: the errors of its parts, the regime that it is in, and warnings
// of what no measurement covers. docs/concepts/intervals.md explains the rule.
#pragma once

#include "sim/cluster/cluster.h"
#include "strategies/step/regimes.h"
#include "strategies/step/run_program.h"
#include "strategies/step/step.h"
#include "strategies/step/work.h"

namespace rehearse::step {

/// What the runs of a step tell of its error.
struct RunErrors {
  PriceReach prices = {};
  bool calibrated = false;                        ///< every price of a collective
  Provenance provenance = Provenance::kRecorded;  ///< the worst of the work and of the devices
};

/// The error of computing, as factors; that of measured steps, if there are any.
program::Interval computing_of_step(const Spec& spec, const Work& work);
/// The error of communication, as factors.
program::Interval links_of(bool calibrated);
/// Sets Step::computing and Step::links.
void set_errors(Step& step, const Spec& spec, const Work& work, bool calibrated);

/// Sets the interval of Step::time around its value, and unless the step was measured its regime and
/// stall, with a warning of these. REQUIRES: set_errors(), and the step's communication and share of
/// the host.
void set_interval(Step& step, const Spec& spec, const Work& work, Situation situation,
                  const RunErrors& errors);

/// Warnings of the communication, of the workload and of memory. REQUIRES: the step's memory.
void add_warnings(Step& step, const Spec& spec, const cluster::Cluster& cluster, bool calibrated);

}  // namespace rehearse::step
