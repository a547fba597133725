// Records what the process does on its GPUs: kernels, copies, calls, waits, by NVIDIA's CUPTI.
#pragma once

namespace rehearse::capture {

/// Begins, once in a process. Called when the CUDA driver has just started. Whatever is missing is
/// said in one line on stderr, and the process goes on without its kernels being recorded.
void start_device_records();

}  // namespace rehearse::capture
