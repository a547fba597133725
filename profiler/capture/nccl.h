// NCCL: the data of its profiler interface, as records. NCCL loads the library in
// NCCL_PROFILER_PLUGIN and finds tables of the functions below in it (entry_points.cc).
//
// Invariants:
//  1. No callback waits, and only init ever returns an error.
//  2. Handles are numbers, not addresses: a stale or foreign one has no
//     effect. None is null, because NCCL omits the children of an event without a handle.
//  3. Memory is bounded; an event without room is counted as lost.
#pragma once

#include "profiler/capture/nccl_abi.h"

namespace rehearse::capture {

nccl::Result nccl_init_v3(void** context, int* mask);
nccl::Result nccl_init_v4(void** context, int* mask, const char* name, std::uint64_t communicator,
                          int nodes, int ranks, int rank, nccl::Logger log);
/// Versions 5 and 6.
nccl::Result nccl_init_v5(void** context, std::uint64_t communicator, int* mask, const char* name,
                          int nodes, int ranks, int rank, nccl::Logger log);
nccl::Result nccl_start_v3(void* context, void** handle, void* event);
nccl::Result nccl_start_v4(void* context, void** handle, void* event);
nccl::Result nccl_start_v5(void* context, void** handle, void* event);
// All versions.
nccl::Result nccl_stop(void* handle);
nccl::Result nccl_record_state(void* handle, int state, void* arguments);
nccl::Result nccl_finalize(void* context);

}  // namespace rehearse::capture
