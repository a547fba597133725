// Fused attention: scores never reach memory.
//
// A block of queries multiplies with all of its keys. The rate per multiprocessor and clock decides
// what else counts: exponentials, which run at 16 per clock while products run, and the time to
// begin and to end a block. With F FLOPs of the peak per multiprocessor and clock,
//   time = FLOPs / (0.63 · sustained) · (1 + (F / 64) / size) / (1 + (F / 64) / 128)
//                                     · (1 + (F / 8) / keys)
// where `sustained` is the rate of a product, `keys` the mean number of a query, and `size` the
// head size, which kernels have in steps: 32, 64, 96, 128, 192, 256. Fewer blocks of 128 queries
// than multiprocessors take as long as one for each.
// docs/concepts/op-cost.md has the source and the errors.
#pragma once

#include "models/compute/device_facts.h"
#include "models/workload/op.h"

namespace rehearse::compute {

/// The least head size of a kernel that holds this one.
double head_of_kernel(double size);

/// Seconds, without launches. `sustained`: rate of matrix products, FLOP/s. Causal work is counted
/// once. REQUIRES: attention, and a device with a peak of this arithmetic.
double attention_time(const DeviceFacts& facts, Arithmetic arithmetic, double sustained,
                      const workload::Op& op);

}  // namespace rehearse::compute
