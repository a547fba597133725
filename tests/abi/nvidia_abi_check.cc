// Holds the declarations of this folder against NVIDIA's headers, where they are installed: this
// file is only compiled, and nothing in it runs.
#include <cstddef>
#include <type_traits>

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn_graph.h>
#include <nccl.h>
#include <nvrtc.h>

#include "profiler/bench/cublaslt.h"
#include "profiler/bench/cuda.h"
#include "profiler/bench/cudnn.h"
#include "profiler/bench/nccl.h"
#include "profiler/bench/nvrtc.h"

// Our enumerations are compared with theirs.
#pragma GCC diagnostic ignored "-Wenum-compare"

namespace rehearse::bench {
namespace {

/// Handles are pointers, whatever they point to; enumerations are passed as int.
template <class Ours, class Theirs>
constexpr bool kPassedAlike =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_floating_point_v<Ours> ==
        std::is_floating_point_v<Theirs>;

template <class Ours, class Theirs>
struct CalledAlike : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct CalledAlike<R (*)(A...), S (*)(B...)>
    : std::bool_constant<kPassedAlike<R, S> && (kPassedAlike<A, B> && ...)> {
};

// cuda.h gives some functions the names of their newest versions; those are ours where they end
// with _v2, and cuEventElapsedTime is of one type in both.
#define X(name, result, parameters) \
  static_assert(CalledAlike<result(*) parameters, decltype(&::name)>::value, #name);
REHEARSE_CUDA_FUNCTIONS(X)
#undef X
static_assert(
    CalledAlike<decltype(Cuda::cuStreamWaitValue32), decltype(&::cuStreamWaitValue32)>::value);
static_assert(kCudaOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              kCudaNoDevice == CUDA_ERROR_NO_DEVICE &&
              kCudaPeerAlreadyOn == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              kMemoryClockKhz == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE &&
              kL2Bytes == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE &&
              kComputeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              kComputeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE &&
              kHostMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
              kStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
              kWaitUntilAtLeast == CU_STREAM_WAIT_VALUE_GEQ);

static_assert(cublaslt::kReal32F == CUDA_R_32F && cublaslt::kReal16F == CUDA_R_16F &&
              cublaslt::kReal16Bf == CUDA_R_16BF && cublaslt::kReal8E4M3 == CUDA_R_8F_E4M3);
static_assert(cublaslt::kCompute32F == CUBLAS_COMPUTE_32F &&
              cublaslt::kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32 &&
              cublaslt::kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(cublaslt::kDescTransposeA == CUBLASLT_MATMUL_DESC_TRANSA &&
              cublaslt::kDescTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              cublaslt::kDescEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              cublaslt::kDescBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cublaslt::kLayoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              cublaslt::kLayoutBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
              cublaslt::kPreferenceWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(cublaslt::kEpilogueDefault == CUBLASLT_EPILOGUE_DEFAULT &&
              cublaslt::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS &&
              cublaslt::kEpilogueReluBias == CUBLASLT_EPILOGUE_RELU_BIAS &&
              cublaslt::kEpilogueGeluBias == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(sizeof(cublaslt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(cublaslt::HeuristicResult, state) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state));

static_assert(cudnn::kTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
              cudnn::kPointwise == CUDNN_BACKEND_POINTWISE_DESCRIPTOR &&
              cudnn::kOperationPointwise == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
              cudnn::kOperationGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR &&
              cudnn::kVariantPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
              cudnn::kExecutionPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              cudnn::kEngineHeuristic == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
              cudnn::kEngineConfig == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
static_assert(cudnn::kForwardAlpha + 5 == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y &&
              cudnn::kBackwardDataAlpha + 3 == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W &&
              cudnn::kBackwardDataAlpha + 4 == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX &&
              cudnn::kBackwardDataAlpha + 5 == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY &&
              cudnn::kBackwardFilterAlpha + 3 == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW &&
              cudnn::kBackwardFilterAlpha + 5 == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
static_assert(cudnn::kPackIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS &&
              cudnn::kPackPointers == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS &&
              cudnn::kPackWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE &&
              cudnn::kPlanWorkspaceSize == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
              cudnn::kHeuristicResults == CUDNN_ATTR_ENGINEHEUR_RESULTS &&
              cudnn::kGraphOperations == CUDNN_ATTR_OPERATIONGRAPH_OPS);
static_assert(cudnn::kGreaterOrEqual == CUDNN_POINTWISE_CMP_GE &&
              cudnn::kIndex == CUDNN_POINTWISE_GEN_INDEX &&
              cudnn::kSelect == CUDNN_POINTWISE_BINARY_SELECT &&
              cudnn::kMaximum == CUDNN_REDUCE_TENSOR_MAX &&
              cudnn::kSum == CUDNN_REDUCE_TENSOR_ADD && cudnn::kHeuristicA == CUDNN_HEUR_MODE_A &&
              cudnn::kHeuristicFallback == CUDNN_HEUR_MODE_FALLBACK &&
              cudnn::kCrossCorrelation == CUDNN_CROSS_CORRELATION);
static_assert(cudnn::kBfloat16 == CUDNN_DATA_BFLOAT16 && cudnn::kHalf == CUDNN_DATA_HALF &&
              cudnn::kBoolean == CUDNN_DATA_BOOLEAN && cudnn::kInt32 == CUDNN_DATA_INT32);

#define X(name, result, parameters) \
  static_assert(CalledAlike<decltype(CublasLt::name), decltype(&::name)>::value, #name);
REHEARSE_CUBLASLT_FUNCTIONS(X)
#undef X
#define X(name, result, parameters) \
  static_assert(CalledAlike<decltype(Cudnn::name), decltype(&::name)>::value, #name);
REHEARSE_CUDNN_FUNCTIONS(X)
#undef X
#define X(name, result, parameters) \
  static_assert(CalledAlike<decltype(Nvrtc::name), decltype(&::name)>::value, #name);
REHEARSE_NVRTC_FUNCTIONS(X)
#undef X
#define X(name, result, parameters) \
  static_assert(CalledAlike<decltype(Nccl::name), decltype(&::name)>::value, #name);
REHEARSE_NCCL_FUNCTIONS(X)
#undef X

}  // namespace
}  // namespace rehearse::bench
