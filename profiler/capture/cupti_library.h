// Finds and loads NVIDIA's CUPTI, which the library must not be linked with.
#pragma once

#include <limits.h>

#include "profiler/capture/cupti_abi.h"

namespace rehearse::capture {

/// The functions of CUPTI that we call. Those marked optional are null where the version lacks
/// them.
struct CuptiLibrary {
  cupti::Result (*get_version)(std::uint32_t*);
  cupti::Result (*subscribe)(void**, cupti::ApiCallback, void* user);
  cupti::Result (*subscribe_v2)(void**, cupti::ApiCallback, void* user,
                                cupti::SubscriberParams*);  ///< optional
  cupti::Result (*enable_callback)(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                                   std::uint32_t callback);
  cupti::Result (*callback_name)(std::uint32_t domain, std::uint32_t callback, const char** name);
  cupti::Result (*set_attribute)(std::uint32_t attribute, std::size_t* bytes, void* value);
  cupti::Result (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted);
  cupti::Result (*enable)(std::uint32_t kind);
  cupti::Result (*disable)(std::uint32_t kind);
  cupti::Result (*flush_all)(std::uint32_t flag);
  cupti::Result (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes,
                               std::uint8_t** record);
  cupti::Result (*dropped)(void* context, std::uint32_t stream, std::size_t* records);
  cupti::Result (*set_thread_id_type)(std::uint32_t type);                       ///< optional
  cupti::Result (*enable_driver_api)(std::uint32_t callback, std::uint8_t on);   ///< optional
  cupti::Result (*enable_runtime_api)(std::uint32_t callback, std::uint8_t on);  ///< optional
  cupti::Result (*enable_all_sync_records)(std::uint8_t on);                     ///< optional

  std::uint32_t version;
  char path[PATH_MAX];  ///< path of the file, as found
};

inline constexpr char kCuptiVariable[] = "REHEARSE_CUPTI";

/// Searches in this order: the file in REHEARSE_CUPTI; the library that the process has already
/// loaded (two different ones in a process interfere with each other); the folder of the CUDA
/// run-time library of the process; the toolkit of CUDA_HOME or CUDA_PATH; /usr/local/cuda; the
/// linker's search path. False if there is none, or if the one found lacks a function.
bool load_cupti(CuptiLibrary& into);

/// The toolkit that contains a version of CUPTI, as 12040 for CUDA 12.4; 0 if unknown.
unsigned toolkit_version(std::uint32_t cupti_version);

/// The CUDA version that the driver supports, as 12040 for 12.4; 0 if no driver is loaded.
int driver_version();

}  // namespace rehearse::capture
