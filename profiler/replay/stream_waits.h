// Finds device ops that waited for ops of other streams.
#pragma once

#include <vector>

#include "profiler/replay/constants.h"
#include "profiler/replay/recording.h"

namespace rehearse::replay {

enum class Evidence : std::uint8_t {
  kRecorded,  ///< a recorded synchronisation names both sides
  kCall,      ///< a StreamWaitEvent call, matched to the work it most likely meant
  kTiming,    ///< nothing else explains the late start, and another stream's op ended just then
};

struct StreamWait {
  GpuIndex before;
  GpuIndex after;
  Evidence evidence;
};

struct StreamWaitOptions {
  bool from_calls = true;
  bool from_timing = true;
};

/// Edges between streams. Every edge leads from an op to one that starts later, so that no set of
/// them closes a cycle with the order on streams and threads.
std::vector<StreamWait> find_stream_waits(const Recording& recording, const Constants& constants,
                                          StreamWaitOptions options);

/// For a recording without a host, by GpuIndex: the op whose end each op follows, since no launch
/// says more. It is the previous op of its stream where the distance is short (kLate), else the op of
/// any stream that had ended last. Nothing for ops that began before any had ended.
std::vector<std::optional<GpuIndex>> find_followed(const Recording& recording);

}  // namespace rehearse::replay
