// NVRTC: compiles kernels at run time, so that building this program needs no CUDA compiler.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/bench/library.h"
#include "sim/base/result.h"

namespace rehearse::bench {

// name in the library, return type, parameters
#define REHEARSE_NVRTC_FUNCTIONS(X)                                                  \
  X(nvrtcVersion, int, (int*, int*))                                                 \
  X(nvrtcGetErrorString, const char*, (int))                                         \
  X(nvrtcCreateProgram, int,                                                         \
    (void**, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram, int, (void**))                                              \
  X(nvrtcCompileProgram, int, (void*, int, const char* const*))                      \
  X(nvrtcGetCUBINSize, int, (void*, std::size_t*))                                   \
  X(nvrtcGetCUBIN, int, (void*, char*))                                              \
  X(nvrtcGetProgramLogSize, int, (void*, std::size_t*))                              \
  X(nvrtcGetProgramLog, int, (void*, char*))

/// The source of our kernels (kernels.cu) for operands of a format: bf16, fp16 or fp32.
std::string kernel_source(std::string_view dtype);

/// Threads per block, with which all functions of the source are launched: rehearse_elementwise_1
/// (one operand), rehearse_elementwise_2 (two), rehearse_reduction, rehearse_norm,
/// rehearse_softmax.
inline constexpr unsigned kKernelThreads = 256;

class Nvrtc {
 public:
  static Result<Nvrtc> open();
  REHEARSE_NVRTC_FUNCTIONS(REHEARSE_POINTER)
  const std::string& name() const { return name_; }  ///< with its version

  /// Compiles a source for devices of a compute capability. Fails with the compiler's first
  /// message. Needs no GPU.
  Result<std::vector<char>> compile(const std::string& source, int major, int minor) const;

 private:
  std::string name_;
};

}  // namespace rehearse::bench
