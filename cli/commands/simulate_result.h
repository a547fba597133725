// The document of `rehearse simulate --chakra`.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/simulate_options.h"
#include "cli/output/document.h"
#include "models/job/program_ops.h"
#include "sim/base/estimate.h"
#include "sim/base/warning.h"
#include "sim/graph/timeline.h"

namespace rehearse::cli {

/// A job that has been run.
struct Simulation {
  program::Program job;
  std::string input;    ///< "job.et" or "job.0.et … job.7.et"
  std::string cluster;  ///< "32 × h100_sxm5_80"; empty: ops take the durations of their traces
  step::Fidelity fidelity;
  job::Rules rules;
  job::LoweredJob lowered;
  graph::Timeline timeline;
  std::vector<job::RankRange> occupancy;
  Estimate<Seconds> step;
  std::vector<Warning> warnings;
  double by_roofline = 0;  ///< share of the op time that is estimated by a roofline
};

Document simulation_document(const Simulation& simulation);

}  // namespace rehearse::cli
