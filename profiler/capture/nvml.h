// NVML: power and clocks of the boards that the process may use, read at intervals by a
// thread of the library.
#pragma once

namespace rehearse::capture {

/// Starts options().power readings per second, unless options().device is off. Call it once per
/// process. Missing sources (the library, a driver, a board's answer) are skipped, and a FactRecord
/// names them. CUDA_VISIBLE_DEVICES is read by this call, so call it when CUDA is initialized.
void start_power();

/// Takes a last reading and ends the thread. Waits for a reading in progress, but only briefly.
void stop_power();

}  // namespace rehearse::capture
