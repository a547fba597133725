// NCCL: the functions that measuring collectives needs.
#pragma once

#include <cstddef>
#include <string>

#include "profiler/bench/cuda.h"
#include "profiler/bench/library.h"
#include "sim/base/result.h"

namespace rehearse::bench {

// name in the library, return type, parameters. Communicators are opaque pointers.
#define REHEARSE_NCCL_FUNCTIONS(X)                                                          \
  X(ncclGetVersion, int, (int*))                                                            \
  X(ncclGetErrorString, const char*, (int))                                                 \
  X(ncclCommInitAll, int, (void**, int, const int*))                                        \
  X(ncclCommDestroy, int, (void*))                                                          \
  X(ncclGroupStart, int, ())                                                                \
  X(ncclGroupEnd, int, ())                                                                  \
  X(ncclAllReduce, int, (const void*, void*, std::size_t, int, int, void*, CudaStream))     \
  X(ncclAllGather, int, (const void*, void*, std::size_t, int, void*, CudaStream))          \
  X(ncclReduceScatter, int, (const void*, void*, std::size_t, int, int, void*, CudaStream)) \
  X(ncclBroadcast, int, (const void*, void*, std::size_t, int, int, void*, CudaStream))     \
  X(ncclSend, int, (const void*, std::size_t, int, int, void*, CudaStream))                 \
  X(ncclRecv, int, (void*, std::size_t, int, int, void*, CudaStream))

class Nccl {
 public:
  static Result<Nccl> open();
  REHEARSE_NCCL_FUNCTIONS(REHEARSE_POINTER)
  const std::string& name() const { return name_; }  ///< with its version
  Status check(int code, std::string_view what) const;

 private:
  std::string name_;
};

}  // namespace rehearse::bench
