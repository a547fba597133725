// NVML: power and clocks of the boards that the process may use, read at intervals by a
// thread of the library.
#pragma once

namespace rehearse::capture {

/// Starts options().power readings per second, unless options().device is off. Once per
/// process. Missing sources (the library, a driver, a board's answer) are skipped, and a FactRecord
/// names them. CUDA_VISIBLE_DEVICES is read now, so call this when CUDA is
/// initialised.
void start_power();

/// Reads once more and ends the thread. Waits for a read that is under way, but not for long.
void stop_power();

}  // namespace rehearse::capture
