#include "strategies/step/factors.h"

#include <cmath>

namespace rehearse::step {

Estimate<Seconds> interval_of(const Estimate<Seconds>& step, const ByFactor<double>& shares,
                              const Known& known) {
  double down = std::log(known.step.low), up = std::log(known.step.high);
  for (std::size_t k = 0; k < kFactors; ++k) {
    down = std::hypot(down, shares[k] * std::log(known.factors[k].low));
    up = std::hypot(up, shares[k] * std::log(known.factors[k].high));
  }
  return {step.value, step.value * std::exp(-down), step.value * std::exp(up), step.provenance};
}

}  // namespace rehearse::step
