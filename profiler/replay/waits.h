// Finds the device work that each blocking host call waited for.
#pragma once

#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

/// A call that returns only when all of `ops` have ended (or, where `before_end`, when a pageable
/// copy to the device is nearly through). Without `ops` nothing recorded says what it waited for.
struct HostWait {
  HostIndex call;
  std::vector<GpuIndex> ops;
  bool before_end = false;
  /// Whether the recording shows that it had to wait: some op ended inside the call.
  bool waited = false;
};

/// From the end of what a call waits for to its return, on any machine seen, 3 to 20 us. What a
/// call that waited takes beyond this, its cause does not explain.
inline constexpr Nanoseconds kLongestWake{40000};

/// Every blocking call of every thread, with what it waits for: from recorded synchronisations
/// where there are any, else from what the call means and which work had been launched. Ops that
/// the recorded times contradict (they ended after the call returned) are left out.
std::vector<HostWait> find_host_waits(const Recording& recording);

/// A copy from pageable memory of at most this many bytes is staged by the driver: its call returns
/// at once (CUDA Runtime API, "API synchronization behavior").
inline constexpr std::uint64_t kStagedBytes = std::uint64_t{64} << 10;

}  // namespace rehearse::replay
