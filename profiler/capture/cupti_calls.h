// Calls of the CUDA runtime and driver: their names, and the recorded ones.
#pragma once

#include <string_view>

namespace rehearse::capture {

/// The name without prefix and version: cudaLaunchKernel for CUPTI's cudaLaunchKernel_ptsz_v7000.
std::string_view plain_call_name(const char* name);

/// Whether the call starts work on a device, waits for it, or allocates device memory. Other calls
/// are so frequent and short that recording them would cost more time than they take.
bool is_recorded_call(std::string_view plain_name);

/// Whether CUPTI's records must be fetched before the call, because it may discard them.
bool ends_records(std::string_view plain_name);

}  // namespace rehearse::capture
