#include "profiler/ingest/numbers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::ingest {

namespace {

constexpr std::string_view kDigits = "0123456789";

std::optional<std::uint32_t> leading_number(std::string_view text) {
  return parse_id(text.substr(0, text.find_first_not_of(kDigits)));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<double> parse_real(std::string_view text) {
  const std::optional<double> value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Nanoseconds> parse_microseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view rest = text.substr(negative ? 1 : 0);
  std::int64_t value = 0;
  std::size_t digits = 0, at = 0;
  for (; at < rest.size() && is_digit(rest[at]); ++at, ++digits) {
    if (value > (INT64_MAX - 9) / 10000) return std::nullopt;  // leaves room for three decimals
    value = value * 10 + (rest[at] - '0');
  }
  int decimals = 0;
  bool round_up = false;
  if (at < rest.size() && rest[at] == '.')
    for (++at; at < rest.size() && is_digit(rest[at]); ++at, ++digits) {
      if (decimals < 3) {
        value = value * 10 + (rest[at] - '0');
        ++decimals;
      } else if (decimals++ == 3) {
        round_up = rest[at] >= '5';
      }
    }
  if (digits == 0) return std::nullopt;
  if (at < rest.size()) {  // an exponent, or no number at all
    const std::optional<double> real = parse_real(text);
    if (!real || std::abs(*real) > 9e15) return std::nullopt;
    return Nanoseconds(std::llround(*real * 1000));
  }
  for (; decimals < 3; ++decimals) value *= 10;
  if (round_up) ++value;
  return Nanoseconds(negative ? -value : value);
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  if (const auto value = parse_number<std::int64_t>(text)) return value;
  const std::optional<double> real = parse_real(text);
  if (!real || std::abs(*real) > 9e18 || *real != std::floor(*real)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::optional<std::uint32_t> parse_id(std::string_view text) {
  const std::optional<std::int64_t> value = parse_whole(text);
  if (!value || *value < 0 || *value > UINT32_MAX - 1) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const std::optional<std::int64_t> value = parse_whole(text);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::uint32_t> number_behind_rank(std::string_view name) {
  std::string word(name);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t at = word.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(word).substr(at + 4);
  if (!rest.empty() && std::string_view(" _-:=.").find(rest.front()) != std::string_view::npos)
    rest.remove_prefix(1);
  return leading_number(rest);
}

std::optional<std::uint32_t> number_in_file_name(const std::filesystem::path& file) {
  constexpr std::array<std::string_view, 6> kExtensions = {".gz",    ".json", ".et",
                                                           ".trace", ".pt",   ".sqlite"};
  const std::string name = file.filename().string();
  std::string_view stem = name;
  const auto ends = [&](std::string_view extension) { return stem.ends_with(extension); };
  for (auto e = std::ranges::find_if(kExtensions, ends); e != kExtensions.end();
       e = std::ranges::find_if(kExtensions, ends))
    stem.remove_suffix(e->size());
  if (const auto behind_rank = number_behind_rank(stem)) return behind_rank;
  const std::size_t last = stem.find_last_not_of(kDigits);
  if (last == std::string_view::npos) return parse_id(stem);
  if (const auto trailing = parse_id(stem.substr(last + 1))) return trailing;
  return leading_number(stem);
}

std::optional<std::uint32_t> number_before_extension(const std::filesystem::path& file) {
  std::filesystem::path name = file.filename();
  if (name.extension() == ".gz") name = name.stem();
  const std::string number = name.stem().extension().string();
  return number.starts_with('.') ? parse_id(number.substr(1)) : std::nullopt;
}

}  // namespace rehearse::ingest
