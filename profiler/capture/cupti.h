// Records the GPU work of the process by NVIDIA's CUPTI: kernels, copies, calls, waits.
#pragma once

namespace rehearse::capture {

/// Starts once per process, when the CUDA driver has just started. Missing requirements are
/// reported in one line on stderr, and the process continues without recorded kernels.
void start_device_records();

}  // namespace rehearse::capture
