// TimelineSink: receives a timeline piece by piece, for a Perfetto trace or the report. The caller
// numbers processes and threads. It names a process before its threads, and a thread before its
// spans.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/graph/category.h"

namespace rehearse::cli {

struct TimelineSpan {
  std::string_view name;  ///< from a pool that outlives the sink
  graph::Category category;
  std::size_t process;
  std::size_t thread;
  Seconds start;
  Seconds duration;
  std::optional<OpId> op = {};  ///< in the graph that was run; absent for recorded spans
};

class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  /// Names a process; processes are shown in the order of these calls.
  virtual void process(std::size_t process, std::string_view name) = 0;
  virtual void thread(std::size_t process, std::size_t thread, std::string_view name) = 0;
  virtual void span(const TimelineSpan& span) = 0;
};

}  // namespace rehearse::cli
