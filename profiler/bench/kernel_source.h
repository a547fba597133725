// The source text of the kernels that `bench-gpu` measures for elementwise work, in the language
// that NVRTC compiles. Our own, and plain: 16 bytes a load, one block per row, each row read twice.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::bench {

/// For operands of a format: bf16, fp16 or fp32.
std::string kernel_source(std::string_view dtype);

/// Its functions: rehearse_elementwise_1, of one operand, rehearse_elementwise_2, of two,
/// rehearse_reduction, rehearse_norm, rehearse_softmax. Threads of a block, that all of them are launched with.
inline constexpr unsigned kKernelThreads = 256;

}  // namespace rehearse::bench
