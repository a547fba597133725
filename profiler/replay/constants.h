// Constants of the machine between ops, from a recording: the time from a launch to the start on an
// idle stream, the distance of ops of one stream, the time until a waiting call returns.
//
// These are medians over the occurrences that show the constant alone. A replay uses them, never
// the recorded time of a single op.
#pragma once

#include "profiler/replay/recording.h"
#include "profiler/replay/waits.h"

namespace rehearse::replay {

/// A median and its number of samples. Without samples it is a default from the recordings named in
/// docs/concepts/replay.md.
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
  Fitted sync_cost;  ///< a synchronizing call that does not have to wait
  Fitted copy_cost;  ///< a copying call, without any waiting

  /// The cost of a blocking call of this kind on its thread, without waiting.
  Nanoseconds own(CallKind kind) const;
  /// The time from the end of the awaited work to the return of the call.
  Nanoseconds wake_of(CallKind kind) const;
};

/// The part of a blocking call that neither its own cost nor its awaited work explains. If nothing
/// recorded says what it waited for, this is all of the rest; else it is the time beyond the
/// longest wake-up.
Nanoseconds unexplained(const Recording& recording, const HostWait& wait,
                        const Constants& constants);

Constants fit_constants(const Recording& recording, const std::vector<HostWait>& waits);

}  // namespace rehearse::replay
