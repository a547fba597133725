// The kind of collective of a kernel or framework range, from its name.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/collective.h"

namespace rehearse::trace {

/// The collective that a framework names: "allreduce", "nccl:all_to_all", "_allgather_base",
/// "ALL_REDUCE", "send 0->1". Nothing for any other text.
std::optional<CollectiveKind> collective_from_framework(std::string_view name);

/// Whether a kernel belongs to NCCL, RCCL or a similar library.
bool is_communication_kernel(std::string_view name);

/// The collective in the name of an NCCL or RCCL kernel
/// ("ncclKernel_AllReduce_RING_LL_Sum_float", "ncclDevKernel_SendRecv"); nothing if it has none
/// ("ncclDevKernel_Generic").
std::optional<CollectiveKind> collective_from_kernel(std::string_view name);

}  // namespace rehearse::trace
