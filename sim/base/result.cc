#include "sim/base/result.h"

#include <fmt/core.h>

#include "sim/base/utf8.h"

namespace rehearse {
namespace {

constexpr std::size_t kQuoted = 200;  // bytes of one value that an error shows
constexpr std::size_t kPart = 4000;   // bytes of one part of an error, which may list names

/// The text up to `most` bytes, cut before a character.
std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

/// The text without the rest of values in quotes, and of words, that are too long to read.
std::string legible(std::string_view text) {
  std::string shown;
  char before = ' ';  // an apostrophe within a word is no quote
  while (!text.empty() && shown.size() <= kPart) {
    const bool quoted = text.front() == '\'' && (before == ' ' || before == '(');
    const std::size_t end = quoted ? text.find('\'', 1) : text.find_first_of(" '", 1);
    const std::string_view value = text.substr(0, quoted && end < text.size() ? end + 1 : end);
    shown += beginning(value, kQuoted);
    if (value.size() > kQuoted) shown += quoted ? "…'" : "…";
    before = value.back();
    text.remove_prefix(value.size());
  }
  return shown;
}

}  // namespace

std::string to_string(const Diagnostic& d) {
  std::string line;
  if (!d.file.empty()) {
    line += beginning(d.file, kPart);  // about as long as the name of a file can be
    if (d.line) line += fmt::format(":{}", *d.line);
    if (d.line && d.column) line += fmt::format(":{}", *d.column);
    line += ": ";
  }
  if (!d.key.empty()) line += legible(d.key) + ": ";
  line += legible(d.problem);
  if (!d.expected.empty()) line += "; " + legible(d.expected);
  if (!d.nearest.empty()) line += "; " + legible(d.nearest);
  return printable(line);
}

std::string to_string(const Error& error) {
  std::string lines;
  for (const Diagnostic& d : error.diagnostics) {
    if (!lines.empty()) lines += '\n';
    lines += to_string(d);
  }
  return lines;
}

}  // namespace rehearse
