#include "profiler/replay/interval.h"

#include <algorithm>
#include <cmath>

namespace rehearse::replay {
namespace {

Estimate<Seconds> around(Seconds value, double relative, Provenance provenance) {
  // Symmetric in the logarithm: a factor of two is as likely wrong either way.
  return {value, value * std::exp(-relative), value * std::exp(relative), provenance};
}

double own_error(const Comparison& recorded) {
  return std::max(kReplayError, std::abs(recorded.step_time.error()));
}

}  // namespace

Estimate<Seconds> estimate_step(const Comparison& recorded) {
  return around(recorded.step_time.simulated, own_error(recorded), Provenance::kRecorded);
}

Estimate<Seconds> estimate_step(const Comparison& recorded, const Comparison& edited) {
  const Seconds before = recorded.step_time.simulated, after = edited.step_time.simulated;
  const bool comparable = before > Seconds::s(0) && after > Seconds::s(0);
  const double change = comparable ? std::abs(std::log(after / before)) : 0;
  return around(after, own_error(recorded) + kErrorPerChange * change,
                change > 0 ? Provenance::kExtrapolated : Provenance::kRecorded);
}

}  // namespace rehearse::replay
