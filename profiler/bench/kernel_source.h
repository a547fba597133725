// The source text of our own kernels for elementwise work, which `bench-gpu` measures, in the
// language that NVRTC compiles. They are simple: 16 bytes per load, one block per row, each row
// read twice.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::bench {

/// Source for operands of a format: bf16, fp16 or fp32.
std::string kernel_source(std::string_view dtype);

/// Threads per block, with which all functions of the source are launched: rehearse_elementwise_1
/// (one operand), rehearse_elementwise_2 (two), rehearse_reduction, rehearse_norm,
/// rehearse_softmax.
inline constexpr unsigned kKernelThreads = 256;

}  // namespace rehearse::bench
