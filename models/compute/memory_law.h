// Memory-bound kernels: bytes over a share of the peak rate, and, for kernels that read a row
// more than once, the passes that a cache does not hold.
//
//   elementwise   time = bytes / (share · rate) + call
//   norm          bytes · (1 + 0.5 miss) · sweeps: a row is read for its moments, then again
//   softmax       one pass of a row of up to 1024 elements, in registers; above that,
//                 bytes · (1 + miss) · sweeps: read for the maximum, the sum and the result
// `miss` goes from 0 to 1 with the cache use of all active rows: resident rows · row bytes ÷
// (cache · L2), linear between two bounds of each kind. `sweeps` is the effect of the last, partly
// idle sweep of a block over its row. docs/concepts/op-cost.md has the derivation and the errors.
#pragma once

#include "models/compute/device_facts.h"

namespace rehearse::compute {

struct MemoryConstants {
  double elementwise = 0.88;   ///< share of the peak rate; no more than 0.97
  double norm = 1;             ///< rate of norms ÷ that of elementwise kernels
  double softmax = 1;          ///< the same
  double norm_cache = 1;       ///< share of L2 that keeps rows for another pass of a norm
  double softmax_cache = 0.6;  ///< and of softmax
  double norm_sweep = 0.5;     ///< cost share of idle lanes in a norm's last sweep
  double softmax_sweep =
      0.5;             ///< and in softmax: much where memory is fast, as on A100; none on T4
  double call = 2e-6;  ///< s, of a kernel
};

/// A norm or softmax over rows.
struct RowKernel {
  double bytes;    ///< read and written once
  double width;    ///< elements of a row; 0: not known, as if nothing were held
  double element;  ///< bytes
};

/// Passes over the bytes: 1 where every row stays in the cache.
double norm_passes(const DeviceFacts& facts, const MemoryConstants& constants,
                   const RowKernel& kernel);
double softmax_passes(const DeviceFacts& facts, const MemoryConstants& constants,
                      const RowKernel& kernel);

}  // namespace rehearse::compute
