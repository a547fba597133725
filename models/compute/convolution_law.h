// The time of a convolution by the best of three algorithms, as libraries choose:
//   implicit product   positions × channels out × inputs summed by the wave law, at a share of the
//                      rate that depends on the direction and on the window
//   Winograd, fused    windows of 3 × 3 without stride, forward and gradient of inputs, FP32:
//                      16 multiplications for 4 results of 9, 4/9 of the product
//   Winograd in parts  the same windows in every direction, FP32: 36 batched products for tiles of
//                      4 × 4 results, 1/4 of the product; transformed tiles are written and read
// The window divided by the stride (u) follows from the bytes: elements of the unfolded input ÷
// those of the input. Where u is not from 6.8 to 9.6 there is no Winograd. docs/concepts/op-cost.md
// has the source of the shares and the errors.
#pragma once

#include "models/compute/device_facts.h"
#include "models/compute/wave_law.h"
#include "models/workload/op.h"

namespace rehearse::compute {

/// Seconds. REQUIRES: a convolution, in this arithmetic.
double convolution_time(const WaveShape& shape, const WaveDevice& device, Arithmetic arithmetic,
                        const workload::Op& op);

}  // namespace rehearse::compute
