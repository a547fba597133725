#include "sim/base/utf8.h"

#include <algorithm>

namespace rehearse {

Utf8 utf8_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {0, true};
    if ((byte(i) & 0xC0) != 0x80) return {0, false};
  }
  if (length == 3) {
    if (lead == 0xE0 && byte(1) < 0xA0) return {0, false};
    if (lead == 0xED && byte(1) > 0x9F) return {0, false};  // surrogates
  }
  if (length == 4) {
    if (lead == 0xF0 && byte(1) < 0x90) return {0, false};
    if (lead == 0xF4 && byte(1) > 0x8F) return {0, false};
  }
  return {length, false};
}

std::string sound_text(std::string_view text, std::uint64_t& replaced) {
  std::string sound;
  sound.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_at(text).length;
    if (length == 0) {
      sound += '?';
      ++replaced;
      text.remove_prefix(1);
    } else {
      sound += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return sound;
}

bool acts_on_terminal(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (character.size() == 2) return (byte(0) == 0xC2 && byte(1) < 0xA0) || character == "\u061C";
  // Marks from U+200E to U+200F, U+2028 to U+202E and U+2066 to U+2069.
  return character.size() == 3 && ((character >= "\u200E" && character <= "\u200F") ||
                                   (character >= "\u2028" && character <= "\u202E") ||
                                   (character >= "\u2066" && character <= "\u2069"));
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_at(text).length;
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0)
      safe += '?';
    else if (acts_on_terminal(character))
      safe += ' ';
    else
      safe += character;
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace rehearse
