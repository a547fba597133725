// Which device work each host call waited for.
#pragma once

#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

/// A call that returns only when all of `ops` have ended (or, where `before_end`, when a pageable
/// copy to the device is nearly through).
struct HostWait {
  HostIndex call;
  std::vector<GpuIndex> ops;
  bool before_end = false;
  /// Whether the recording shows that it had to wait: some op ended inside the call.
  bool waited = false;
};

/// The waits of every thread, from recorded synchronisations where there are any, else from what
/// the call means and which work had been launched. A wait that the recorded times contradict (the
/// work ended after the call returned) is left out.
std::vector<HostWait> find_host_waits(const Recording& recording);

/// A copy from pageable memory of at most this many bytes is staged by the driver: its call returns
/// at once (CUDA Runtime API, "API synchronization behavior").
inline constexpr std::uint64_t kStagedBytes = std::uint64_t{64} << 10;

}  // namespace rehearse::replay
