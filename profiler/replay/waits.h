// Finds the device work that each blocking host call waited for.
#pragma once

#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

/// A call that returns only when all of `ops` have ended (or, with `before_end`, when a pageable
/// copy to the device is nearly complete). Without `ops`, nothing recorded says what it waited for.
struct HostWait {
  HostIndex call;
  std::vector<GpuIndex> ops;
  bool before_end = false;
  /// Whether the recording shows that the call waited: an op ended during it.
  bool waited = false;
};

/// The longest plausible time from the end of the awaited work to the return of a call; 3 to 20 us
/// on all machines seen. If a call that waited takes longer than this, its cause does not explain
/// the rest.
inline constexpr Nanoseconds kLongestWake{40000};

/// Returns every blocking call of every thread with the ops that it waits for: from recorded
/// synchronizations if there are any, else from the meaning of the call and the work that had been
/// launched. Ops that contradict the recorded times (they ended after the call returned) are left
/// out.
std::vector<HostWait> find_host_waits(const Recording& recording);

/// A copy from pageable memory of at most this many bytes is staged by the driver: its call returns
/// at once (CUDA Runtime API, "API synchronization behavior").
inline constexpr std::uint64_t kStagedBytes = std::uint64_t{64} << 10;

}  // namespace rehearse::replay
