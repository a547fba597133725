// The rate of a ring on a network over the kernel's TCP.
//
// NCCL opens one socket for each channel and neighbour, unless it recognizes the cloud by its network
// card, which a container hides (NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD in its documentation).
// It makes two channels of each ring that it finds (connect.cc, "Duplicate ringPrev/ringNext"), so
// that a ring has two flows for each card. Clouds cap a flow: Amazon EC2 at 5 Gbit/s outside of a
// cluster placement group and 10 Gbit/s within (EC2 user guide, instance network bandwidth;
// recalled). A ring therefore gets two flows, and between one, if both meet in one queue, and the
// whole network card, if the cloud is recognized. Cards of 200 Gbit/s and more have plug-ins that copy
// between GPU and card (GPUDirect-TCPX) or not: on two a3-highgpu-8g rings got 0.67 of the cards with
// one and 0.2 without, trees on two a3-megagpu-8g 0.9. Between nodes of EC2 with 50 Gbit/s, rings got 0.6
// to 1.6 flows (docs/accuracy.md, Pollux).
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::comm {

/// A cloud's rate cap for one flow.
inline constexpr ByteRate kOneFlow = ByteRate::gbit_per_s(5);
/// Cards of this rate have plug-ins for NCCL.
inline constexpr ByteRate kWithPlugIn = ByteRate::gbit_per_s(200);
/// Channels of NCCL for each ring.
inline constexpr double kFlows = 2;

/// The rate of a ring over network cards that together carry `rate`, each with separate flows. An
/// unlimited rate stays unlimited. Provenance is extrapolated. REQUIRES: a rate above zero.
inline Estimate<ByteRate> tcp_rate(ByteRate rate, double cards = 1) {
  if (!std::isfinite(rate.bytes_per_s())) return {rate, rate, rate, Provenance::kExtrapolated};
  if (rate >= kWithPlugIn * std::max(1.0, cards))
    return {rate * 0.5, rate * 0.2, rate, Provenance::kExtrapolated};
  const ByteRate flows = kOneFlow * std::max(1.0, cards);
  return {std::min(rate, flows * kFlows), std::min(rate, flows), rate, Provenance::kExtrapolated};
}

}  // namespace rehearse::comm
