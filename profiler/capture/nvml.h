// NVML: what the boards that the process may use draw and how fast they run, read at intervals by a
// thread of the library's own.
#pragma once

namespace rehearse::capture {

/// Starts reading at options().power readings a second, unless options().device is off. Once a
/// process; what is missing (the library, a driver, a board's answer) is left out, and a FactRecord
/// says what. CUDA_VISIBLE_DEVICES counts as it is now: so this is to be called when CUDA is
/// initialised.
void start_power();

/// Reads once more and ends the thread. Waits for a read that is under way, but not for long.
void stop_power();

}  // namespace rehearse::capture
