// Records what programs name through NVTX.
#pragma once

#include "profiler/capture/nvtx_abi.h"

namespace rehearse::capture {

/// Gives a program or library that uses NVTX our callbacks. 1 when its calls are recorded, else 0,
/// and NVTX makes them do nothing.
int initialize_nvtx(nvtx::GetExportTable get_export_table);

/// The same for an extension module; all but that of payloads do nothing.
int initialize_nvtx_extension(nvtx::ExtensionModule* module);

/// What one push and pop cost the calling thread (median), in nanoseconds: the very code that
/// records, into a chunk that is emptied instead of written. Needs no recording and starts none.
double ns_per_range();

}  // namespace rehearse::capture
