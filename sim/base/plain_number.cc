#include "sim/base/plain_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace rehearse {

std::string plain_number(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || !(std::abs(number) <= 1e15)) return "";
  const std::string_view suffix(rest, end);
  if (suffix.empty()) return digits.size() < text.size() ? digits : "";
  constexpr std::string_view kLetters = "kKmMgGbB";
  const std::size_t letter = kLetters.find(suffix.front());
  const bool binary = suffix.substr(1) == "i";
  if (letter == kLetters.npos || (suffix.size() > 1 && !binary)) return "";
  const int power = letter < 2 ? 1 : letter < 4 ? 2 : 3;
  const std::string of_1024 = fmt::format("{:.0f}", number * std::pow(1024, power));
  return binary ? of_1024 : fmt::format("{:.0f} or {}", number * std::pow(1000, power), of_1024);
}

}  // namespace rehearse
