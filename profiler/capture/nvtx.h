// Records the NVTX ranges and marks of programs.
#pragma once

#include "profiler/capture/nvtx_abi.h"

namespace rehearse::capture {

/// Gives a program or library that uses NVTX our callbacks. 1 when its calls are recorded, else 0,
/// and NVTX makes them do nothing.
int initialize_nvtx(nvtx::GetExportTable get_export_table);

/// The same for an extension module; all but that of payloads do nothing.
int initialize_nvtx_extension(nvtx::ExtensionModule* module);

/// Opens a range of the domain of that name on this thread, for callers that do not use NVTX.
/// Returns its level, negative when nothing is recorded.
int push_named(const char* domain, const char* name);

/// Closes the innermost range of the domain on this thread. `name` takes the place of its name
/// unless it is null: some ranges are known only at their end. Negative for a pop without a push.
int pop_named(const char* domain, const char* name);

/// The cost of one push and pop on the calling thread (median), in nanoseconds: runs the recording
/// code into a chunk that is discarded. Needs no recording and starts none.
double ns_per_range();

}  // namespace rehearse::capture
