#include "profiler/ingest/numbers.h"

#include <cmath>

#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::ingest {
namespace {

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

}  // namespace rehearse::ingest
