#include "profiler/capture/facts.h"

#include <algorithm>

#include "profiler/capture/recording.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {

void note(std::string_view key, std::string_view value) {
  const Callback callback;
  if (!callback) return;
  const FactRecord fact = {.key = text_number(callback.thread(), key),
                           .value = text_number(callback.thread(), value)};
  append(callback.thread(), fact);
}

void trouble(std::initializer_list<std::string_view> parts) {
  say(parts);
  char line[kMaxTextBytes];
  std::size_t n = 0;
  for (const std::string_view part : parts) {
    const std::size_t fits = std::min(part.size(), sizeof line - n);
    std::memcpy(line + n, part.data(), fits);
    n += fits;
  }
  note("trouble", {line, n});
}

}  // namespace rehearse::capture
