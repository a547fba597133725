// TimelineSink: receives a timeline piece by piece: a Perfetto trace or the report. The caller
// numbers processes and threads; a process is named before its threads, and a thread before its
// spans.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/graph/category.h"

namespace rehearse::cli {

struct TimelineSpan {
  std::string_view name;  ///< of a pool that outlives the sink
  graph::Category category;
  std::size_t process;
  std::size_t thread;
  Seconds start;
  Seconds duration;
  std::optional<OpId> op = {};  ///< of the graph that was run; nothing for what was recorded
};

class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  /// In the order in which they are shown.
  virtual void process(std::size_t process, std::string_view name) = 0;
  virtual void thread(std::size_t process, std::size_t thread, std::string_view name) = 0;
  virtual void span(const TimelineSpan& span) = 0;
};

}  // namespace rehearse::cli
