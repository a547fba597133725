#include "sim/base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace rehearse {
namespace {

constexpr std::size_t kMostListed = 8;  ///< names that hold a part of a wrong one
constexpr std::size_t kEdit = 1024;     ///< an edit, and more than the letters of any name

/// Insertions, deletions, changes, and swaps of two neighbours (optimal string alignment) that make `b`
/// of `a`, times `kEdit`, and the digits of `a` that are lost: a typed number is rarely another number.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j * kEdit;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    const std::size_t loss = kEdit + (a[i - 1] >= '0' && a[i - 1] <= '9' ? 1 : 0);
    row[0] = last[0] + loss;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : loss);
      row[j] = std::min({last[j] + loss, row[j - 1] + kEdit, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + kEdit);
    }
  }
  return row.back();
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The words between '-', '_' and ' ' after the last '/', in small letters; "80GB" is "80".
std::vector<std::string> words_of(std::string_view name) {
  std::string text = lower(name.substr(name.rfind('/') + 1));
  std::ranges::replace_if(
      text, [](char c) { return c == '-' || c == '_'; }, ' ');
  std::vector<std::string> words;
  for (std::string_view word : split(text, ' ')) {
    if (word.ends_with("gb") && word.find_first_not_of("0123456789") == word.size() - 2)
      word.remove_suffix(2);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

/// What spellings of one name have in common.
std::string plain(std::string_view name) { return join(words_of(name), ""); }

}  // namespace

std::optional<std::string_view> spelled_alike(std::string_view word,
                                              std::span<const std::string_view> candidates) {
  if (const auto same = std::ranges::find(candidates, word); same != candidates.end()) return *same;
  std::optional<std::string_view> only;
  const std::string own = plain(word);
  for (const std::string_view candidate : candidates) {
    if (own.empty() || plain(candidate) != own) continue;
    if (only) return std::nullopt;
    only = candidate;
  }
  return only;
}

std::optional<std::string_view> nearest(std::string_view written,
                                        std::span<const std::string_view> candidates) {
  if (const auto alike = spelled_alike(written, candidates)) return alike;
  const std::string word = lower(written);
  // "a100" is a prefix of other names; "a10" is closer by letters, but is something else.
  const auto begun = [&](std::string_view candidate) {
    return !word.empty() && lower(candidate).starts_with(word);
  };
  const bool any_begun = std::ranges::any_of(candidates, begun);
  std::optional<std::string_view> best;
  std::size_t best_distance = (std::max<std::size_t>(1, word.size() / 3) + 1) * kEdit;
  for (std::string_view candidate : candidates) {
    if (any_begun && !begun(candidate)) continue;
    // Each missing letter is a change: words of very different lengths need no table of distances.
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if ((longer - shorter) * kEdit >= best_distance) continue;
    const std::size_t distance = edit_distance(word, lower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest(std::string_view word, std::span<const std::string_view> candidates) {
  if (const auto near = nearest(word, candidates)) return fmt::format("did you mean '{}'?", *near);
  std::vector<std::string_view> begun;
  for (const std::string_view candidate : candidates)
    if (!word.empty() && lower(candidate).starts_with(lower(word))) begun.push_back(candidate);
  return "one of " +
         join(begun.empty() ? candidates : std::span<const std::string_view>(begun), ", ");
}

std::string suggest_name(std::string_view word, std::span<const std::string_view> names,
                         std::string_view kind) {
  // The names with the most words of the given one.
  const std::vector<std::string> words = words_of(word);
  std::size_t most = 0;
  std::vector<std::string_view> holding;
  for (const std::string_view name : names) {
    const std::string text = lower(name);
    const auto held = static_cast<std::size_t>(std::ranges::count_if(
        words, [&](const std::string& each) { return text.find(each) != text.npos; }));
    if (held > most) holding.clear();
    most = std::max(most, held);
    if (held > 0 && held == most) holding.push_back(name);
  }
  const bool all = most == words.size();
  const auto near = nearest(word, names);
  if (near && !(all && holding.size() == 1)) return fmt::format("did you mean '{}'?", *near);
  if (!all && holding.size() > kMostListed) holding.clear();
  if (holding.size() == 1) return fmt::format("did you mean '{}'?", holding.front());
  if (!holding.empty()) return "one of " + join(holding, ", ");
  return fmt::format("'rehearse catalog {}' lists them", kind);
}

bool matches_wildcard(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::optional<std::size_t> star;  // where in the pattern to resume after a mismatch
  std::size_t resume = 0;           // where in the text
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const double rounding = 1 + 0.5 * std::pow(10, -digits);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value) * rounding)));
  const int decimals = std::clamp(digits - 1 - exponent, 0, 15);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string signed_percent(double ratio) {
  const double percent = ratio * 100;
  if (std::abs(percent) < 0.005) return "0.00 %";
  const int decimals = std::abs(percent) < 10 ? 2 : std::abs(percent) < 100 ? 1 : 0;
  return fmt::format("{:+.{}f} %", percent, decimals);
}

std::string grouped(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace rehearse
