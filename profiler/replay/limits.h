// Physical limits of a replay, from the recording alone: the time of the host without the devices,
// and of the devices without the host. A replay in which the other side takes no time must lie
// within them.
#pragma once

#include "profiler/replay/lower.h"

namespace rehearse::replay {

/// The shortest and the longest time that is possible.
struct Limits {
  Seconds least, most;
};

/// The time that the host works in a step by itself, outside blocking calls. Where a step ends with
/// the device's work, its last launch ends it here. The blocking calls of the step's thread alone
/// give `most`, and those of all threads together give `least`, because it is not known for which of
/// them the step's thread waited. A call blocks by its meaning (CUDA Runtime API, "API
/// synchronization behavior"), or because it lasted until its own copy had ended.
/// REQUIRES: the recording has a host.
Limits host_alone(const Recording& recording, const StepOps& step);

/// The time from the beginning of the recording to the end of its last device op, if the host takes
/// no time. `least` is the busy time of the busiest stream. `most` is the time in which any device op
/// ran, plus what a host of no time leaves: the gaps between ops of a stream, hand-offs, unexplained
/// waits and delays, the way back and forth of each blocking call, and the state before the
/// recording.
Limits devices_alone(const Recording& recording, const RankReplay& replay,
                     const program::RankProgram& program);

}  // namespace rehearse::replay
