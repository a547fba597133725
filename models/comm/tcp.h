// The rate of a ring on a network over the kernel's TCP.
//
// NCCL opens one socket for each ring and neighbour, unless it recognizes the cloud by its network
// card, which a container hides (NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD in its documentation).
// Clouds cap a flow: Amazon EC2 at 5 Gbit/s outside of a cluster placement group and 10 Gbit/s
// within (EC2 user guide, instance network bandwidth; recalled). A ring therefore gets between one
// flow and the whole network card. A cluster's declaration does not determine where in this range;
// the value is the logarithmic middle. Between nodes of EC2 with 50 Gbit/s, rings got one to two
// flows (docs/accuracy.md, Pollux). Valid for network cards up to 100 Gbit/s.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::comm {

/// A cloud's rate cap for one flow.
inline constexpr ByteRate kOneFlow = ByteRate::gbit_per_s(5);

/// The rate of a ring over network cards that together carry `rate`, each with separate flows. An
/// unlimited rate stays unlimited. Provenance is extrapolated. REQUIRES: a rate above zero.
inline Estimate<ByteRate> tcp_rate(ByteRate rate, double cards = 1) {
  if (!std::isfinite(rate.bytes_per_s())) return {rate, rate, rate, Provenance::kExtrapolated};
  const ByteRate least = std::min(rate, kOneFlow * std::max(1.0, cards));
  return {ByteRate::bytes_per_s(std::sqrt(least.bytes_per_s() * rate.bytes_per_s())), least, rate,
          Provenance::kExtrapolated};
}

}  // namespace rehearse::comm
