// The time of a convolution by the best of three algorithms, as libraries choose:
//   implicit product   positions × channels out × inputs summed by the wave law, at a share of the
//                      rate that depends on the direction and on the window
//   Winograd, fused    windows of 3 × 3 without stride, forward and gradient of inputs, FP32:
//                      16 multiplications for 4 results of 9, 4/9 of the product
//   Winograd in parts  the same windows in every direction, FP32: 36 batched products for tiles of
//                      4 × 4 results, 1/4 of the product; transformed tiles are written and read
// Matrix units read channels last. Where a job keeps them first, input and result are read and
// written once more, unless the window is 1 × 1 without a stride: that is a product for each image,
// at a lower share of the rate. Ordinary cores convolve what has channels in that are no multiple
// of 8, with a kernel that has no tiles: a share of the rate, and at least the bytes. The window
// divided by the stride (u) follows from the bytes: elements of the unfolded input ÷ those of the
// input. Where u is not from 6.8 to 9.6 there is no Winograd. docs/concepts/op-cost.md has the
// source of the shares and the errors.
#pragma once

#include "models/compute/device_facts.h"
#include "models/compute/wave_law.h"
#include "models/workload/op.h"

namespace rehearse::compute {

/// Whether ordinary cores convolve it, because channels in, of a group, are too few for tiles: a
/// depthwise convolution, or one of an image. Libraries pad the channels of images where they come
/// last.
bool needs_cores(const workload::Op& op);

/// Seconds. `converted`: the share of input and result that matrix units convert from channels
/// first. `spare`: spare_share(); the shares are limits outside of the matrix units. REQUIRES: a
/// convolution; one that needs_cores() is in FP32, whatever its format.
double convolution_time(const WaveShape& shape, const WaveDevice& device, Arithmetic arithmetic,
                        const workload::Op& op, double converted, double spare = 1);

}  // namespace rehearse::compute
