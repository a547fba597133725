// Lookups that readers of single tables need from the reader of the whole file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "profiler/trace/trace.h"

namespace rehearse::ingest {

struct CaptureLookup {
  /// The text with this number; nothing when it was lost. 0 is no text.
  std::function<std::optional<NameId>(std::uint64_t text)> name;
  /// CLOCK_REALTIME as a time of the rank; nothing when it is damage.
  std::function<std::optional<Nanoseconds>(std::uint64_t time)> time;
  std::function<trace::ThreadId(std::uint32_t thread)> thread;
};

}  // namespace rehearse::ingest
