// The computing of a layout's ranks in a step, independent of time: times and FLOPs by
// purpose.
#pragma once

#include <array>
#include <vector>

#include "models/workload/layout.h"
#include "strategies/step/devices.h"
#include "strategies/step/step.h"

namespace rehearse::step {

/// The work of one rank in one step, as a mean over all ranks of the layout.
struct Work {
  Seconds compute = Seconds::s(0);    ///< forward and backward
  Seconds recompute = Seconds::s(0);  ///< repeated forward work
  Seconds optimizer = Seconds::s(0);
  Seconds launch = Seconds::s(0);  ///< time of launching beyond running, of each pass alone
  Seconds fixed = Seconds::s(0);   ///< once per step, on ranks of stages
  /// Of a transformer block and microbatch, as a mean: forward, backward and recomputation. Zero
  /// without such blocks.
  BlockWork block = {};
  Flops model = Flops::flop(0);  ///< of matrix operations
  Flops recomputed = Flops::flop(0);
  /// The interval of compute, recompute and optimizer together, as factors.
  double fastest = 1, slowest = 1;
  Provenance provenance = Provenance::kRecorded;
  /// Shares of the time by provenance.
  std::array<double, 4> share_by_provenance = {};
  /// By kind of device: compute, recompute and optimizer of all its ranks together.
  std::vector<Seconds> busy = {};
};

Work work_of(const workload::Layout& layout, const Devices& devices,
             const strategies::JobOptions& options);

}  // namespace rehearse::step
