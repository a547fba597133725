// UTF-8: validation of a recording's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::ingest {

/// The character at the begin of a text: its length, 0 when it is wrong, and whether it is wrong
/// only because the text ends within it.
struct Utf8 {
  std::size_t length;
  bool cut;
};
/// REQUIRES: text is not empty.
Utf8 utf8_at(std::string_view text);

/// The text with each byte that is no UTF-8 replaced by '?'. Adds how many there were to
/// `replaced`.
std::string sound_text(std::string_view text, std::uint64_t& replaced);

}  // namespace rehearse::ingest
