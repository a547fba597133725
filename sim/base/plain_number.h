// Numbers as people type them, which no reader of numbers accepts.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// What a text such as "8k" or "8,192" can mean, for the message that refuses it: "8000 or 8192".
/// Empty if it is no number with the letter of a thousand, million or billion, or with commas.
std::string plain_number(std::string_view text);

}  // namespace rehearse
