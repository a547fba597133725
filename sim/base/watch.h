// Watch: the progress of long loops, for the code that asked for their result on the same thread.
//
// The loops of the engine, of lists of jobs and of servers are called through many functions that
// have no use for a Progress. Each loop reports to the watch of its thread, if there is one.
#pragma once

#include "sim/base/progress.h"

namespace rehearse {

/// As long as it exists, the loops of this thread report to it; the innermost of several gets the
/// reports. It is destroyed on the thread that made it.
class Watch {
 public:
  explicit Watch(Progress progress);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  friend bool report(double share);
  Progress progress_;
  Watch* outer_;
};

/// Reports the share of a loop that is done, from 0 to 1. False if the loop is asked to stop: it then
/// fails with "stopped". Costs some nanoseconds without a watch.
bool report(double share);

}  // namespace rehearse
