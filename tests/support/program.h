// A simulated machine whose constants are known: a host thread that works, launches, copies and
// waits, and a device with streams. It writes the trace that a profiler would have recorded, so
// that a replay, also one of an edited program, can be compared with the machine itself.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "profiler/trace/trace.h"

namespace rehearse::test {

struct Machine {
  double launch = 8;     // us, from a call's start to an idle stream
  double queue_gap = 1;  // between ops of one stream
  double wake = 6;       // from the end of the awaited work to the return of the call
  double sync_cost = 4;  // of a call that does not have to wait
  double host_factor = 1;
  double device_factor = 1;
  bool records_syncs = true;  // as CUPTI's synchronization records; else there are only calls
};

struct Action {
  enum class Kind {
    kWork,
    kKernel,
    kSyncDevice,
    kSyncStream,
    kCopyBack,
    kStreamWait,
    kUnknownWait
  } kind;
  double length;   // of host work, of the device op, or of the wait, us
  int stream = 0;  // of the op, or the stream that waits
  int other = 0;   // the stream that is waited for
};

using Program = std::vector<std::vector<Action>>;  // by step

/// With `unknown_waits`, each step blocks once without a recorded cause.
Program random_program(std::uint64_t seed, bool unknown_waits = false);

struct Recorded {
  trace::Trace trace;
  std::vector<double> host_steps;  // us
  double device_end;               // us
};

/// Runs the program on the machine.
Recorded execute(const Program& program, const Machine& machine);

}  // namespace rehearse::test
