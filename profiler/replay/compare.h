// compare: the error of the simulated run of a recording relative to the recording.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/replay/lower.h"
#include "sim/graph/timeline.h"

namespace rehearse::replay {

/// A measured and a simulated duration of the same thing.
struct Pair {
  Seconds measured;
  Seconds simulated;
  /// The relative error; zero if nothing was measured.
  double error() const { return measured > Seconds::s(0) ? simulated / measured - 1 : 0; }
};

/// A step by its host and device periods. They differ if the host runs ahead of the device; in a
/// steady state the larger is the step time.
struct StepComparison {
  std::size_t rank;
  std::string name;
  bool partial;
  /// From the start of the step to the start of the next. Absent without a host, and where the
  /// whole recording of a device is one step: nothing repeats on the host.
  std::optional<Pair> host;
  std::optional<Pair> device;  ///< from the last device op of the step before to this step's last

  /// The host's period if there is one.
  const Pair& period() const { return host ? *host : *device; }
};

struct Comparison {
  std::vector<StepComparison> steps;
  /// The step time: per rank, the mean over whole steps of the longer of the two periods (in
  /// steady state the device cannot lag further and further); then the mean over ranks.
  Pair step_time = {Seconds::s(0), Seconds::s(0)};
  double median_error = 0;  ///< |error| over whole steps, host and device periods
  double worst_error = 0;   ///< the error with the largest magnitude, with its sign
  /// Median over device ops of |simulated - recorded start|, as a share of the mean whole step.
  double start_error = 0;
  /// The share of the recorded time in which a device op was late for a reason that no rule knows.
  double residual_share = 0;
  /// The share of an average whole step in which its rank waits for work that was not recorded. Only
  /// of a run without edits; set by the caller that runs it (attribution.h).
  double unexplained_wait_share = 0;
};

Comparison compare(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                   const graph::Timeline& timeline);

}  // namespace rehearse::replay
