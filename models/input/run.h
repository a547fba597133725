// Runs of a pipeline, and the length of a run that is sufficient to measure its rate.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/input/lower.h"
#include "models/input/pipeline.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::input {

/// Ops of the longest run.
inline constexpr double kMostOps = 1e7;
/// The usual length of a run, in ops, where random times must average out.
inline constexpr double kUsualOps = 6e5;
/// A run is measured in this number of parts with equal units.
inline constexpr std::size_t kParts = 10;

struct Run {
  graph::Graph graph;  ///< of the service alone, whose ops keep their numbers
  graph::Timeline timeline;
  Lowered lowered;
  std::vector<Seconds> ends;  ///< of the units, in order of time
};

/// Fails as lower() does.
Result<Run> run_units(const Pipeline& pipeline, double units, Start start);

/// A run whose units from `first` to `last` become ready after queues have settled, and before the
/// remaining work runs out.
struct Settled {
  Run run;
  std::size_t first, last;
};

/// Fails where a unit of the last stage takes too many ops, or too long, to run enough of them, and
/// where nothing takes any time.
Result<Settled> run_settled(const Pipeline& pipeline);

/// The slope of a straight line through the ends of units `first` to `last`. Workers that end
/// together hand over units in bursts, which affect a line less than a difference of two ends.
Seconds time_per_unit(std::span<const Seconds> ends, std::size_t first, std::size_t last);

/// Whether anything in the pipeline is random, or differs from take to take.
bool varies(const Pipeline& pipeline);

/// Values to reduce if a run would take too long.
std::string way_out(const Pipeline& pipeline, const Counts& counts);

}  // namespace rehearse::input
