// Constants of the machine between ops, from a recording: the time of a launch to reach an
// idle stream, the distance of ops of one stream, the time of a waiting call to
// return.
//
// These are medians over the occurrences that show the constant alone. A replay uses them, never
// the recorded time of a single op.
#pragma once

#include <optional>
#include <string>

#include "profiler/replay/recording.h"
#include "profiler/replay/waits.h"

namespace rehearse::replay {

/// A median and how many samples it rests on. With none it is a default from the recordings named
/// in docs/concepts/replay.md.
struct Fitted {
  Nanoseconds value{0};
  std::size_t samples = 0;
};

struct Constants {
  Fitted launch;  ///< from the start of a launching call to the start on an idle stream: kernels
  Fitted copy_launch;  ///< the same for copies and sets
  Fitted queue_gap;    ///< between ops of one stream if the later one was launched long before
  Fitted wake;         ///< from the end of awaited work to the return of a synchronising call
  Fitted copy_wake;    ///< the same for a call that waits for its own copy
  Fitted copy_lead;  ///< how long before the end of a pageable copy to the device its call returns
  Fitted sync_cost;  ///< a synchronising call that finds nothing to wait for
  Fitted copy_cost;  ///< a copying call, without any waiting

  /// Own cost of a blocking call of this kind on its thread, without waiting.
  Nanoseconds own(CallKind kind) const;
  /// From the end of the awaited work to its return.
  Nanoseconds wake_of(CallKind kind) const;
};

/// How much of a blocking call neither its own cost nor what it waits for accounts for: all of the
/// rest where nothing recorded says what it waited for, else what lies beyond the longest wake-up.
Nanoseconds unexplained(const Recording& recording, const HostWait& wait,
                        const Constants& constants);

Constants fit_constants(const Recording& recording, const std::vector<HostWait>& waits);

}  // namespace rehearse::replay
