// Interference: computing is slower while the same device communicates.
//
// A collective's kernel takes multiprocessors and memory bandwidth from concurrent kernels. The law of
// a kernel that takes `alone` without a collective, and of a collective on `share` of the device's
// multiprocessors:
//
//   with the collective = alone · (1 + kPerShare · share) + kPerKernel · share
//
// Source: the same kernel (name, blocks, shapes of its operator) with and without a collective in one
// recording, 302 kernels of six recordings of H800, A100, V100 and MI300X; docs/concepts/contention.md
// has the fit with each recording left out. Rows have shares from 0.07 to 0.22. Kernels that compute and
// kernels that move memory lose alike. Galvatron's measured "overlap coefficient" of 1.1256 is apart.
// The collective itself is not slowed, and copies slow no kernel: both are assumed, not measured.
#pragma once

#include <span>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/graph/graph.h"

namespace rehearse::comm {

inline constexpr double kPerShare = 0.5;
inline constexpr Seconds kPerKernel = Seconds::us(10);
/// Assumed where the collective's kernel is not known: 24 channels of an A100, the most in the rows.
inline constexpr double kCollectiveShare = 0.2;
/// What kernels lose that last much longer than kPerKernel · share. Plans use this limit.
inline constexpr double kOverlapPenalty = kPerShare * kCollectiveShare;

/// The slowdown of kernels with this mean time alone. The interval reaches from no slowdown (MI300X) to
/// 2.6 times the loss, the most of any recording in the sum of its kernels.
Estimate<double> slowdown_by_collectives(Seconds mean_kernel);

struct DeviceOps {
  std::vector<OpId> compute;        ///< with a duration, or with work in seconds
  std::vector<OpId> communication;  ///< collectives, or members of transfers
};

/// Makes ops of one device interfere. `slowdown` 1 changes nothing, and another call
/// adds to what communication takes. Compute ops become work of as many
/// seconds as they last, on one capacity per server; REQUIRES: slowdown >= 1.
void interfere(graph::GraphBuilder& graph, std::span<const DeviceOps> devices, double slowdown);

}  // namespace rehearse::comm
