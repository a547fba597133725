// Records the NVTX ranges and marks of programs.
#pragma once

#include "profiler/capture/nvtx_abi.h"

namespace rehearse::capture {

/// Gives our callbacks to a program or library that uses NVTX. Returns 1 if its calls are recorded;
/// else 0, and NVTX makes them do nothing.
int initialize_nvtx(nvtx::GetExportTable get_export_table);

/// The same for an extension module; callbacks other than those for payloads do nothing.
int initialize_nvtx_extension(nvtx::ExtensionModule* module);

/// Opens a range on this thread in the domain with that name, for callers that do not use NVTX.
/// Returns its level, negative if nothing is recorded.
int push_named(const char* domain, const char* name);

/// Closes the innermost range of the domain on this thread. `name` replaces its name unless it is
/// null, because some names are known only at the end. Negative for a pop without a push.
int pop_named(const char* domain, const char* name);

/// The cost of one push and pop on the calling thread (median), in nanoseconds. It runs the
/// recording code into a chunk that is discarded, and neither needs nor starts a recording.
double ns_per_range();

}  // namespace rehearse::capture
