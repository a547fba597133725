// Calls of the CUDA runtime and driver: what they are called, and which of them are recorded.
#pragma once

#include <string_view>

namespace rehearse::capture {

/// What programmers call it: cudaLaunchKernel of CUPTI's cudaLaunchKernel_ptsz_v7000.
std::string_view plain_call_name(const char* name);

/// Whether the call starts work on a device, waits for it, or takes memory there. The others are so
/// many and so short that to record them would cost the program more than they do.
bool is_recorded_call(std::string_view plain_name);

/// Whether CUPTI's records are to be taken before the call: behind it they may be gone, or it marks
/// the end of what the program wants profiled.
bool ends_records(std::string_view plain_name);

}  // namespace rehearse::capture
