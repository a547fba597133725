#include "sim/base/result.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse {

std::string to_string(const Diagnostic& d) {
  std::string line;
  if (!d.file.empty()) {
    line += d.file;
    if (d.line) line += fmt::format(":{}", *d.line);
    if (d.line && d.column) line += fmt::format(":{}", *d.column);
    line += ": ";
  }
  if (!d.key.empty()) line += d.key + ": ";
  line += d.problem;
  if (!d.expected.empty()) line += "; " + d.expected;
  if (!d.nearest.empty()) line += "; " + d.nearest;
  // Libraries quote the input in their messages: its line breaks would make this several lines.
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return line;
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
