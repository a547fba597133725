// Calls of the CUDA runtime and driver: their names, and the recorded ones.
#pragma once

#include <string_view>

namespace rehearse::capture {

/// The usual name: cudaLaunchKernel for CUPTI's cudaLaunchKernel_ptsz_v7000.
std::string_view plain_call_name(const char* name);

/// Whether the call starts work on a device, waits for it, or takes memory there. The others are so
/// many and so short that to record them would cost the program more than they do.
bool is_recorded_call(std::string_view plain_name);

/// Whether CUPTI's records must be fetched before the call, because it may discard them.
bool ends_records(std::string_view plain_name);

}  // namespace rehearse::capture
