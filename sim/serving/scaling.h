// How many replicas a server has, by a rule that looks at their load.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace rehearse::serving {

/// What the rule looks at, since the decision before:
///  - kRequests: the mean number of requests that were sent to a replica and have not ended
///  - kQueue: the number of requests at the replicas that are in no step, at the decision
///  - kBusy: the time of steps as a share of the interval, summed over replicas
///  - kTtft: the 90th percentile of the times to the first tokens that came out, times the ready replicas
enum class Signal : std::uint8_t { kRequests, kQueue, kBusy, kTtft };
inline constexpr std::string_view kSignalNames[] = {"requests", "queue", "busy", "ttft"};

/// Decisions are at every, 2 · every, …. Each wishes for ceil(signal / target) replicas, within the limits
/// (the rule of Kubernetes' horizontal autoscaler for values per replica). More replicas are started at once.
/// Fewer remain only if no decision of the last `hold` wished for more; the youngest leave first, get no new
/// requests, and end with their last one.
struct Scaling {
  std::size_t least = 1, most = 1;  ///< 1 <= least <= most; a run begins with `least`
  Signal signal = Signal::kRequests;
  double target = 1;               ///< of the signal, per replica: above 0; kTtft: seconds
  Seconds every = Seconds::s(15);  ///< above 0
  Seconds hold = Seconds::s(300);
  Seconds start = Seconds::s(0);  ///< from a decision until the new replica takes requests
};

/// The decisions of one run.
class Scaler {
 public:
  explicit Scaler(const Scaling& scaling)
      : scaling_(scaling), next_(Picoseconds::from(scaling.every)) {}

  Picoseconds next() const { return next_; }
  std::size_t decisions() const { return decisions_; }
  /// How many replicas there should be of now `replicas`, without those that leave.
  /// REQUIRES: now == next().
  std::size_t decide(Picoseconds now, double signal, std::size_t replicas);

 private:
  Scaling scaling_;
  Picoseconds next_;
  std::size_t decisions_ = 0;
  /// Wishes within `hold`. One that is followed by a higher one no longer matters.
  std::deque<std::pair<Picoseconds, std::size_t>> wishes_ = {};
};

}  // namespace rehearse::serving
