// Where the world comes in: every symbol that the library shows. None lets an exception out, for
// nothing in it throws.
#include "profiler/capture/cupti.h"
#include "profiler/capture/nvtx.h"

#define REHEARSE_ENTRY extern "C" [[gnu::visibility("default")]]

namespace capture = rehearse::capture;

/// The CUDA driver calls this when it has started.
REHEARSE_ENTRY int InitializeInjection() {
  capture::start_device_records();
  return 1;  // the driver goes on whatever came of it
}

/// NVTX calls this for each program and library that uses it.
REHEARSE_ENTRY int InitializeInjectionNvtx2(capture::nvtx::GetExportTable get_export_table) {
  return capture::initialize_nvtx(get_export_table);
}

/// NVTX calls this for each of its extension modules.
REHEARSE_ENTRY int InitializeInjectionNvtxExtension(capture::nvtx::ExtensionModule* module) {
  return capture::initialize_nvtx_extension(module);
}

/// For the Python hook: ranges without NVTX.
REHEARSE_ENTRY int rehearse_capture_push(const char* domain, const char* name) {
  return capture::push_named(domain, name);
}
REHEARSE_ENTRY int rehearse_capture_pop(const char* domain, const char* name) {
  return capture::pop_named(domain, name);
}

/// For the launcher: what one range costs, in nanoseconds.
REHEARSE_ENTRY double rehearse_capture_ns_per_range() { return capture::ns_per_range(); }
