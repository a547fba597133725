#include "profiler/replay/interval.h"

#include <algorithm>
#include <cmath>

namespace rehearse::replay {
namespace {

/// A recording whose replay is wrong by more says nothing, and the exponential would overflow.
constexpr double kWidest = 13.8;  // a factor of a million

Estimate<Seconds> around(Seconds value, double relative, Provenance provenance) {
  relative = std::min(relative, kWidest);
  // Symmetric in the logarithm: a factor of two is as likely wrong either way.
  return {value, value * std::exp(-relative), value * std::exp(relative), provenance};
}

double own_error(const Comparison& recorded) {
  return std::max({kReplayError, std::abs(recorded.step_time.error()), recorded.residual_share,
                   recorded.unexplained_wait_share});
}

}  // namespace

Estimate<Seconds> estimate_step(const Comparison& recorded) {
  return around(recorded.step_time.simulated, own_error(recorded), Provenance::kRecorded);
}

Estimate<Seconds> estimate_step(const Comparison& recorded, Seconds edited, double further_error) {
  const Seconds before = recorded.step_time.simulated;
  if (!(before > Seconds::s(0))) return around(edited, 1, Provenance::kExtrapolated);
  // Nothing is left. The interval reaches up to the time that the recording's own error allows.
  if (!(edited > Seconds::s(0)))
    return {edited, edited, before * own_error(recorded), Provenance::kExtrapolated};
  const double change = std::abs(std::log(edited / before));
  return around(
      edited, own_error(recorded) + kErrorPerChange * change + further_error,
      change > 0 || further_error > 0 ? Provenance::kExtrapolated : Provenance::kRecorded);
}

}  // namespace rehearse::replay
