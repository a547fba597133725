// Small text helpers that every module needs: nearest name, wildcard match, number formatting.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse {

/// The candidate that is spelled alike, else the one with the smallest edit distance to `word` in small
/// letters, or nothing when none is within a third of its length (a suggestion further away would
/// mislead).
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

/// The only candidate that is `word` apart from case, '-', '_' and ' ', what `word` has before its last
/// '/', and a final "GB": people write H100-SXM5-80GB and meta-llama/Llama-3.1-70B.
std::optional<std::string_view> spelled_alike(std::string_view word,
                                              std::span<const std::string_view> candidates);

/// "did you mean 'x'?" when a candidate is near, else "one of a, b, c".
std::string suggest(std::string_view word, std::span<const std::string_view> candidates);

/// Of the many names of a kind in the catalog: one that is near or part of `word`, or those that
/// `word` is part of; else the command that lists them.
std::string suggest_name(std::string_view word, std::span<const std::string_view> names,
                         std::string_view kind);

/// Whether `text` matches `pattern`, in which `*` matches any text and every other character
/// itself. Linear in the product of the lengths at worst; never recursive.
bool matches_wildcard(std::string_view pattern, std::string_view text);

/// Formats with this many significant digits, without an exponent: "0.00123", "12.3", "1234"
/// (three).
std::string significant(double value, int digits = 3);

/// A signed percentage of a ratio: 0.0123 -> "+1.23 %".
std::string signed_percent(double ratio);

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t count);

/// "1 rank", "2 ranks", "1,234 ops".
std::string counted(std::uint64_t count, std::string_view what);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

/// The parts, or what `words` makes of each, with the separator between them.
template <class Parts, class Words = std::identity>
std::string join(const Parts& parts, std::string_view separator, Words words = {}) {
  std::string joined;
  bool first = true;
  for (const auto& part : parts) {
    if (!std::exchange(first, false)) joined += separator;
    joined += words(part);
  }
  return joined;
}

}  // namespace rehearse
