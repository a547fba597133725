// cuBLASLt: the functions that measuring needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "profiler/bench/cuda.h"
#include "profiler/bench/library.h"
#include "sim/base/result.h"

namespace rehearse::bench {

// Our own declarations of numbers in cublasLt.h and library_types.h.
namespace cublaslt {
inline constexpr int kReal32F = 0, kReal16F = 2, kReal16Bf = 14, kReal8E4M3 = 28;
inline constexpr int kCompute32F = 68, kComputeTf32 = 77;
inline constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kDescEpilogue = 7,
                     kDescBiasPointer = 8;
inline constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
inline constexpr int kPreferenceWorkspace = 1;
inline constexpr int kEpilogueDefault = 1, kEpilogueBias = 4, kEpilogueReluBias = 6,
                     kEpilogueGeluBias = 36;
inline constexpr int kNotSupported = 15;

struct HeuristicResult {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;  ///< 0 if the algorithm can be used
  float waves;
  int reserved[4];
};
}  // namespace cublaslt

// name in the library, return type, parameters. Descriptors are pointers to opaque structures.
#define REHEARSE_CUBLASLT_FUNCTIONS(X)                                                            \
  X(cublasLtGetVersion, std::size_t, ())                                                          \
  X(cublasLtCreate, int, (void**))                                                                \
  X(cublasLtDestroy, int, (void*))                                                                \
  X(cublasLtMatmulDescCreate, int, (void**, int, int))                                            \
  X(cublasLtMatmulDescDestroy, int, (void*))                                                      \
  X(cublasLtMatmulDescSetAttribute, int, (void*, int, const void*, std::size_t))                  \
  X(cublasLtMatrixLayoutCreate, int, (void**, int, std::uint64_t, std::uint64_t, std::int64_t))   \
  X(cublasLtMatrixLayoutDestroy, int, (void*))                                                    \
  X(cublasLtMatrixLayoutSetAttribute, int, (void*, int, const void*, std::size_t))                \
  X(cublasLtMatmulPreferenceCreate, int, (void**))                                                \
  X(cublasLtMatmulPreferenceDestroy, int, (void*))                                                \
  X(cublasLtMatmulPreferenceSetAttribute, int, (void*, int, const void*, std::size_t))            \
  X(cublasLtMatmulAlgoGetHeuristic, int,                                                          \
    (void*, void*, void*, void*, void*, void*, void*, int, cublaslt::HeuristicResult*, int*))     \
  X(cublasLtMatmul, int,                                                                          \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, \
     void*, void*, void*, const void*, void*, std::size_t, CudaStream))

class CublasLt {
 public:
  static Result<CublasLt> open();
  REHEARSE_CUBLASLT_FUNCTIONS(REHEARSE_POINTER)
  const std::string& name() const { return name_; }  ///< with its version

 private:
  std::string name_;
};

}  // namespace rehearse::bench
