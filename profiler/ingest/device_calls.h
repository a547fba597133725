// The meaning of names of calls and copies in recorders of CUDA and HIP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profiler/trace/trace.h"

namespace rehearse::ingest {

/// Whether a call of the CUDA or HIP runtime or driver starts work on a device.
bool starts_device_work(std::string_view call);

/// The kind of copy for CUPTI's direction number (CUpti_ActivityMemcpyKind); an unknown kind for
/// other numbers.
struct CopyKind {
  std::string_view name;  ///< "Memcpy HtoD"
  trace::CopyDirection direction;
};
CopyKind copy_kind(std::uint64_t number);

/// Name for CUPTI's number (CUpti_ActivityMemoryKind): "Pageable", "Pinned", "Device", ... or
/// "Unknown".
std::string_view memory_name(std::uint64_t number);
trace::HostMemory host_memory(std::uint64_t number);

/// Names and classifies the copy `op`: "Memcpy HtoD (Pageable -> Device)".
std::string describe_copy(std::uint64_t direction, std::uint64_t from, std::uint64_t to,
                          trace::GpuOp& op);

}  // namespace rehearse::ingest
