// The CUDA driver (libcuda.so.1): the functions that measuring needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "profiler/bench/library.h"
#include "sim/base/result.h"

namespace rehearse::bench {

// Our own declarations; in cuda.h, handles are pointers to structures and results an enumeration.
using CudaContext = void*;
using CudaStream = void*;
using CudaEvent = void*;
using CudaModule = void*;
using CudaFunction = void*;
using DeviceAddress = unsigned long long;

inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaNoDevice = 100;
inline constexpr int kCudaPeerAlreadyOn = 704;
enum CudaAttribute : int {
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
};
inline constexpr unsigned kHostPortable = 1, kHostMapped = 2, kStreamNonBlocking = 1,
                          kWaitUntilAtLeast = 0;

// name in the library, return type, parameters
#define REHEARSE_CUDA_FUNCTIONS(X)                                                       \
  X(cuInit, int, (unsigned))                                                             \
  X(cuDriverGetVersion, int, (int*))                                                     \
  X(cuGetErrorName, int, (int, const char**))                                            \
  X(cuDeviceGetCount, int, (int*))                                                       \
  X(cuDeviceGet, int, (int*, int))                                                       \
  X(cuDeviceGetName, int, (char*, int, int))                                             \
  X(cuDeviceGetAttribute, int, (int*, int, int))                                         \
  X(cuDeviceGetPCIBusId, int, (char*, int, int))                                         \
  X(cuDeviceCanAccessPeer, int, (int*, int, int))                                        \
  X(cuDevicePrimaryCtxRetain, int, (CudaContext*, int))                                  \
  X(cuDevicePrimaryCtxRelease_v2, int, (int))                                            \
  X(cuCtxSetCurrent, int, (CudaContext))                                                 \
  X(cuCtxEnablePeerAccess, int, (CudaContext, unsigned))                                 \
  X(cuMemAlloc_v2, int, (DeviceAddress*, std::size_t))                                   \
  X(cuMemFree_v2, int, (DeviceAddress))                                                  \
  X(cuMemGetInfo_v2, int, (std::size_t*, std::size_t*))                                  \
  X(cuMemHostAlloc, int, (void**, std::size_t, unsigned))                                \
  X(cuMemFreeHost, int, (void*))                                                         \
  X(cuMemHostGetDevicePointer_v2, int, (DeviceAddress*, void*, unsigned))                \
  X(cuMemcpyHtoDAsync_v2, int, (DeviceAddress, const void*, std::size_t, CudaStream))    \
  X(cuMemcpyDtoHAsync_v2, int, (void*, DeviceAddress, std::size_t, CudaStream))          \
  X(cuMemcpyDtoDAsync_v2, int, (DeviceAddress, DeviceAddress, std::size_t, CudaStream))  \
  X(cuMemcpyPeerAsync, int,                                                              \
    (DeviceAddress, CudaContext, DeviceAddress, CudaContext, std::size_t, CudaStream))   \
  X(cuMemsetD8Async, int, (DeviceAddress, unsigned char, std::size_t, CudaStream))       \
  X(cuStreamCreate, int, (CudaStream*, unsigned))                                        \
  X(cuStreamDestroy_v2, int, (CudaStream))                                               \
  X(cuStreamSynchronize, int, (CudaStream))                                              \
  X(cuEventCreate, int, (CudaEvent*, unsigned))                                          \
  X(cuEventDestroy_v2, int, (CudaEvent))                                                 \
  X(cuEventRecord, int, (CudaEvent, CudaStream))                                         \
  X(cuEventSynchronize, int, (CudaEvent))                                                \
  X(cuEventElapsedTime, int, (float*, CudaEvent, CudaEvent))                             \
  X(cuModuleLoadData, int, (CudaModule*, const void*))                                   \
  X(cuModuleUnload, int, (CudaModule))                                                   \
  X(cuModuleGetFunction, int, (CudaFunction*, CudaModule, const char*))                  \
  X(cuLaunchKernel, int,                                                                 \
    (CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     CudaStream, void**, void**))

class Cuda {
 public:
  /// Loads and initializes the driver. Fails, with one line and the remedy, if there is no driver,
  /// it does not start, or it sees no device.
  static Result<Cuda> open();

  REHEARSE_CUDA_FUNCTIONS(REHEARSE_POINTER)
  /// Null in drivers that cannot let a stream wait for the host.
  int (*cuStreamWaitValue32)(CudaStream, DeviceAddress, std::uint32_t, unsigned) = nullptr;

  int devices() const { return devices_; }
  int version() const { return version_; }

  /// Success, or a line with the failed call and the driver's error name. lacks_memory
  /// identifies a lack of memory.
  Status check(int code, std::string_view what) const;

 private:
  int devices_ = 0;
  int version_ = 0;
};

/// Whether an error means that device or host memory was insufficient.
bool lacks_memory(const Error& error);
tl::unexpected<Error> fail_for_memory(std::string problem);

}  // namespace rehearse::bench
