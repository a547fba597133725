// What clients send: requests with drawn arrivals and lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/serving/request.h"

namespace rehearse::serving {

/// Uniform among the whole numbers from least to most.
struct Lengths {
  std::int64_t least = 1, most = 1;
};

/// Independent gaps, distributed by Gamma's law: 1 is a Poisson process, less is burstier. With a swing the rate at
/// time t is rate · (1 - swing · cos(2 π t / period)): the gaps are those of a clock that runs with the rate.
struct Arrivals {
  double rate = 1;  ///< per second, the mean of a period
  double shape = 1;
  double swing = 0;  ///< 0 to 1
  Seconds period = Seconds::s(86'400);
};

/// Without arrivals all are planned at 0. The same seed gives the same lengths at every rate.
std::vector<Request> draw(std::size_t count, const Lengths& input, const Lengths& output,
                          const std::optional<Arrivals>& arrivals, std::uint64_t seed);

}  // namespace rehearse::serving
