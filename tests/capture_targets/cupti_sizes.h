// How long CUPTI's records are in each version, as NVIDIA's headers have them; 0 for kinds that the
// tests do not use.
#pragma once

#include "profiler/capture/cupti_abi.h"

namespace rehearse::capture::cupti {

inline std::size_t record_bytes(std::uint32_t record_kind, std::uint32_t version) {
  const auto since = [version](std::uint32_t first, std::size_t then, std::size_t before) {
    return version >= first ? then : before;
  };
  switch (record_kind) {
    case kConcurrentKernel:
      return since(
          kVersion13_0, 216,
          since(19, 208, since(kVersion11_8, 200, since(kVersion11_6, 176, since(15, 168, 160)))));
    case kMemcpy:
      return since(kVersion12_8, 96, since(kVersion11_6, 88, since(kVersion11_1, 80, 72)));
    case kMemcpyPeer: return since(kVersion11_6, 96, since(kVersion11_1, 88, 80));
    case kMemset: return since(kVersion11_6, 88, since(kVersion11_1, 80, 72));
    case kRuntime:
    case kDriver: return 40;
    case kSynchronization: return since(kVersion12_8, 56, 40);
    case kCudaEvent: return since(kVersion12_8, 56, 24);
    case kOverhead: return since(kVersion13_0, 56, since(20, 48, 40));
    case kDevice: return since(19, 184, since(kVersion11_6, 176, 152));
    case kContext: return since(19, 32, 24);
    case kGraphTrace: return since(19, 56, 48);
    case kMemory2: return since(kVersion13_0, 128, since(kVersion11_6, 120, 112));
    case kJit: return since(19, 72, 64);
    default: return 0;
  }
}

}  // namespace rehearse::capture::cupti
