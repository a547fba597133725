// UTF-8 of texts that come from inputs: validation, and the form in which a terminal may show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

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

/// Whether a character acts on a terminal instead of being shown: a control character (C0, DEL, C1),
/// or a mark that changes the direction of the text around it or ends its line.
bool acts_on_terminal(std::string_view character);

/// The text in one line that a terminal can only show: each character that acts on terminals becomes
/// a space, and each invalid byte '?'. Names come from the input and pass here on their way out.
std::string printable(std::string_view text);

}  // namespace rehearse
