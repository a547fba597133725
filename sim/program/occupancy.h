// Occupancy: a rank's time by activity, the result of attribution.h.
#pragma once

#include "sim/base/units.h"

namespace rehearse::program {

/// A partition of a rank's time by device activity (the first of compute, communication, memory
/// that runs), or, while the device idles, by the cause of the next op's wait. The parts add up to
/// `total`; `recompute` and `optimizer` are shares of `compute`.
struct Occupancy {
  Seconds total = Seconds::s(0);
  Seconds compute = Seconds::s(0);  ///< the device computes, whatever else runs
  /// Data moves between ranks, and the device does nothing else.
  Seconds exposed_communication = Seconds::s(0);
  Seconds memory = Seconds::s(0);  ///< only copies and sets run
  Seconds bubble = Seconds::s(0);  ///< idle: another rank works that this one waits for
  Seconds input = Seconds::s(0);   ///< idle: the host loads samples
  Seconds launch = Seconds::s(0);  ///< idle: launches take longer than kernels
  Seconds host = Seconds::s(0);    ///< idle: the host works and has not launched the next op
  Seconds unexplained_wait = Seconds::s(0);  ///< idle: a wait without a recorded cause
  Seconds profiler = Seconds::s(0);          ///< idle: the host does the profiler's work
  Seconds idle = Seconds::s(0);              ///< idle for another reason
  Seconds recompute = Seconds::s(0);         ///< repeated forward work
  Seconds optimizer = Seconds::s(0);         ///< the update of the parameters

  Occupancy& operator+=(const Occupancy& other);
  Occupancy operator*(double factor) const;
  friend Occupancy operator+(Occupancy a, const Occupancy& b) { return a += b; }
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

}  // namespace rehearse::program
