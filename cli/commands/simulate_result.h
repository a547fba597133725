// What simulate shows of a run, in each format.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/simulate_options.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "models/job/lower.h"
#include "sim/base/estimate.h"
#include "sim/base/warning.h"
#include "sim/graph/timeline.h"
#include "sim/program/occupancy.h"

namespace rehearse::cli {

/// A job that has been run.
struct Simulation {
  program::Program job;
  std::string input;    ///< "job.et" or "job.0.et … job.7.et"
  std::string cluster;  ///< "32 × h100_sxm5_80"
  SimulateFidelity fidelity;
  job::Rules rules;
  job::LoweredJob lowered;
  graph::Timeline timeline;
  std::vector<program::Occupancy> occupancy;  ///< by rank that was run
  Estimate<Seconds> step;
  std::vector<Warning> warnings;
  double by_roofline = 0;  ///< share of the times of ops that a roofline gives
};

std::string simulation_text(const Simulation& simulation);
Json simulation_json(const Simulation& simulation);
/// Where the time of each rank goes; ranks that do the same in one line.
Table rank_table(const Simulation& simulation);

}  // namespace rehearse::cli
