// UTF-8: validation of a recording's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::ingest {

/// The first character of a text: its length (0 if it is invalid), and whether it is invalid only
/// because the text ends within it.
struct Utf8 {
  std::size_t length;
  bool cut;
};
/// REQUIRES: the text is not empty.
Utf8 utf8_at(std::string_view text);

/// The text with each invalid byte replaced by '?'. Adds the number of replaced bytes to
/// `replaced`.
std::string sound_text(std::string_view text, std::uint64_t& replaced);

}  // namespace rehearse::ingest
