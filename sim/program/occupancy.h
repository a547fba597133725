// Occupancy: a rank's time by activity, the result of attribution.h.
#pragma once

#include "sim/base/units.h"

namespace rehearse::program {

/// A partition of a rank's time by device activity (the first of compute, communication, memory
/// that runs), or, while the device idles, by the cause of the next op's wait. The parts add up to
/// `total`.
struct Occupancy {
  Seconds total = Seconds::s(0);
  Seconds compute = Seconds::s(0);  ///< the device computes, whatever else runs
  /// Only communication runs, waiting for other ranks included.
  Seconds exposed_communication = Seconds::s(0);
  Seconds memory = Seconds::s(0);  ///< only copies and sets run
  Seconds input = Seconds::s(0);   ///< idle: the host loads samples
  Seconds host = Seconds::s(0);    ///< idle: the host works and has not launched the next op
  Seconds unexplained_wait = Seconds::s(0);  ///< idle: a wait without a recorded cause
  Seconds profiler = Seconds::s(0);          ///< idle: the host does the profiler's work
  Seconds idle = Seconds::s(0);              ///< idle for another reason

  Occupancy& operator+=(const Occupancy& other);
  Occupancy operator*(double factor) const;
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

}  // namespace rehearse::program
