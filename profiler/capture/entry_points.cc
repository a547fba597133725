// The entry points: every symbol that the library exports. None lets an exception out, because
// nothing in them throws.
#include "profiler/capture/cupti.h"
#include "profiler/capture/nccl.h"
#include "profiler/capture/nvml.h"
#include "profiler/capture/nvtx.h"

#define REHEARSE_ENTRY extern "C" [[gnu::visibility("default")]]

namespace capture = rehearse::capture;

/// The CUDA driver calls this when it is initialized.
REHEARSE_ENTRY int InitializeInjection() {
  capture::start_device_records();
  capture::start_power();
  return 1;  // the driver continues in any case
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

// NCCL takes the newest of these that it knows.
#define REHEARSE_NCCL_PROFILER(version, functions, init)                                     \
  REHEARSE_ENTRY capture::nccl::Profiler<capture::nccl::init> ncclProfiler_v##version;       \
  constinit capture::nccl::Profiler<capture::nccl::init> ncclProfiler_v##version = {         \
      "rehearse",         capture::nccl_init_v##functions, capture::nccl_start_v##functions, \
      capture::nccl_stop, capture::nccl_record_state,      capture::nccl_finalize}

REHEARSE_NCCL_PROFILER(3, 3, Init3);
REHEARSE_NCCL_PROFILER(4, 4, Init4);
REHEARSE_NCCL_PROFILER(5, 5, Init5);
REHEARSE_NCCL_PROFILER(6, 5, Init5);

/// For the launcher: the cost of one range, in nanoseconds.
REHEARSE_ENTRY double rehearse_capture_ns_per_range() { return capture::ns_per_range(); }
