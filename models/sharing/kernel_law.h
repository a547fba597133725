// The slowdown of a recorded kernel on a slice of its GPU, from its launch configuration.
//
//  - Launch and latency stay: 2 µs of every kernel.
//  - A kernel that computes takes as long as its most loaded multiprocessor: blocks ÷
//    multiprocessors, rounded up, on the whole GPU and on the slice. A few blocks fit on a slice as
//    well as on the whole GPU.
//  - A memory-bound kernel takes the bandwidth that its blocks request: on the whole GPU at most
//    the bandwidth of the multiprocessors with a block; on the slice at most its share, L2
//    included.
//
// The low end of the slowdown assumes that waves of concurrent blocks are as many as necessary; the
// high end, that the scarcest resource is the bound. A kernel with an unknown launch is treated as
// one of many blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/sharing/slice_law.h"

namespace rehearse::sharing {

struct KernelLaunch {
  double blocks;
  double threads_per_block;
  double registers_per_thread;
  double shared_bytes;  ///< of a block
};

struct KernelSlice {
  double multiprocessors_before;
  double multiprocessors;
  double memory;        ///< memory slices before ÷ of the slice, as SliceRatio::memory
  double shared_bytes;  ///< that a multiprocessor has
};
/// The slice of a GPU that was recorded without MIG.
KernelSlice kernel_slice(const cluster::MigDevice& device, std::uint32_t profile);

/// Factors of the recorded time, none below 1.
struct Slowdown {
  double value, low, high;
};

/// Whether a kernel of this name mostly computes: matrix products, convolutions, attention.
bool computes(std::string_view kernel);

/// Demand of a kernel at full speed, as shares of the device. A compute kernel
/// uses the multiprocessors for its blocks, a memory-bound kernel the bandwidth that
/// these draw, and half as many multiprocessors (kDrawAll, tenants.h).
struct KernelUse {
  double multiprocessors, bandwidth;
};
KernelUse use_of(std::string_view kernel, const std::optional<KernelLaunch>& launch,
                 double multiprocessors);

Slowdown slowdown_on(const KernelSlice& slice, std::string_view kernel, Seconds recorded,
                     const std::optional<KernelLaunch>& launch);

}  // namespace rehearse::sharing
