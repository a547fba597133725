#include "profiler/ingest/utf8.h"

namespace rehearse::ingest {

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

}  // namespace rehearse::ingest
