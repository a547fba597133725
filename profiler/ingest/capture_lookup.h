// Lookups that readers of single tables need from the reader of the whole file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "profiler/trace/trace.h"

namespace rehearse::ingest {

struct CaptureLookup {
  /// The text with this number; nothing if it was lost. 0 means no text.
  std::function<std::optional<NameId>(std::uint64_t text)> name;
  /// CLOCK_REALTIME as a time of the rank; nothing if it is damaged.
  std::function<std::optional<Nanoseconds>(std::uint64_t time)> time;
  std::function<trace::ThreadId(std::uint32_t thread)> thread;
};

}  // namespace rehearse::ingest
