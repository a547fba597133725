// What clients send: requests with drawn arrivals and lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/serving/request.h"

namespace rehearse::serving {

/// Uniform among the whole numbers from least to most.
struct Lengths {
  std::int64_t least = 1, most = 1;
};

/// Independent gaps, distributed by Gamma's law: 1 is a Poisson process, less is burstier.
struct Arrivals {
  double rate = 1;  ///< per second
  double shape = 1;
};

/// Without arrivals all are planned at 0. The same seed gives the same lengths at every rate.
std::vector<Request> draw(std::size_t count, const Lengths& input, const Lengths& output,
                          const std::optional<Arrivals>& arrivals, std::uint64_t seed);

}  // namespace rehearse::serving
