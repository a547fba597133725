#include "profiler/capture/options.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <stdlib.h>

#include "profiler/capture/system.h"
#include "profiler/capture/trigger.h"

namespace rehearse::capture {
namespace {

/// The digits as a number, from the begin of `text`. False where there are none or too many.
bool read_number(std::string_view& text, std::uint64_t& into) {
  std::size_t n = 0;
  std::uint64_t value = 0;
  for (; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n)
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, static_cast<unsigned>(text[n] - '0'), &value))
      return false;
  text.remove_prefix(n);
  into = value;
  return n > 0;
}

bool read_steps(std::string_view text, Options& into) {
  std::uint64_t first = 0, end = UINT64_MAX;
  if (!text.empty() && text[0] != ':' && !read_number(text, first)) return false;
  if (text.empty() || text[0] != ':') return false;
  text.remove_prefix(1);
  if (!text.empty() && !read_number(text, end)) return false;
  if (!text.empty() || first >= end) return false;
  into.first_step = first;
  into.end_step = end;
  return true;
}

bool read_power(std::string_view text, Options& into) {
  std::uint64_t whole = 0;
  if (!read_number(text, whole) || !text.empty() || whole > 1000) return false;
  into.power = static_cast<double>(whole);
  return true;
}

bool read_word(std::string_view word, Options& into) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view key(word.data(), equals);
  std::string_view value = word;
  value.remove_prefix(std::min(equals + 1, word.size()));
  if (word == "device=off") return into.device = false, true;
  if (word == "memory") return into.memory = true;
  if (word == "jit") return into.jit = true;
  if (word == "channels") return into.channels = true;
  if (word == "graph=node") return into.graph = Options::Graph::kNode, true;
  if (word == "graph=launch") return into.graph = Options::Graph::kLaunch, true;
  if (key == "power") return read_power(value, into);
  if (key == "steps") return read_steps(value, into);
  if (key == "ring") return read_number(value, into.ring) && value.empty();
  if (key == "trigger") {
    Trigger trigger;
    if (!parse_trigger(value, trigger) || value.size() >= sizeof into.trigger) return false;
    std::memcpy(into.trigger, value.data(), value.size());
    into.trigger[value.size()] = '\0';
    return true;
  }
  return false;
}

}  // namespace

Options parse_options(const char* words) {
  Options options;
  std::string_view left = words ? words : "";
  while (!left.empty()) {
    const std::size_t n = std::min(left.find(' '), left.size());
    const std::string_view word(left.data(), n);
    if (n > 0 && !read_word(word, options))
      say({kOptionsVariable, ": '", word, "' is not an option; it has no effect"});
    left.remove_prefix(std::min(n + 1, left.size()));
  }
  return options;
}

const Options& options() {
  static constinit Options read;
  static constinit bool is_read = false;  // threads that read at once read the same
  if (!is_read) {
    read = parse_options(::getenv(kOptionsVariable));
    is_read = true;
  }
  return read;
}

}  // namespace rehearse::capture
