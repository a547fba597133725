#include "cli/init/meanings.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// The cells of a row of a table. `\|` is no end of a cell.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      cells.emplace_back(trim(cell));
      cell.clear();
    } else if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else {
      cell += line[i];
    }
  }
  return cells;
}

/// The text with the words of links instead of the links.
std::string without_links(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t middle = text[i] == '[' ? text.find("](", i) : std::string_view::npos;
    const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
    if (end == std::string_view::npos) {
      plain += text[i];
      continue;
    }
    plain += text.substr(i + 1, middle - i - 1);
    i = end;
  }
  return plain;
}

/// The words in backticks.
std::vector<std::string> names_in(std::string_view cell) {
  const std::vector<std::string_view> parts = split(cell, '`');
  std::vector<std::string> names;
  for (std::size_t i = 1; i < parts.size(); i += 2) names.emplace_back(parts[i]);
  return names;
}

/// "key", or the key in a context: "key of `stream`".
bool has_keys(const std::string& heading) {
  return heading == "key" || heading.starts_with("key of ");
}

/// The column with the meaning of a table whose first column has keys.
std::size_t meaning_column(const std::vector<std::string>& headings) {
  for (std::size_t c = 1; c < headings.size(); ++c)
    if (headings[c] == "meaning" || headings[c] == "holds") return c;
  return 1;
}

std::string without_marks(std::string_view path) {
  std::string plain;
  for (const char c : path)
    if (c != '[' && c != ']') plain += c;
  return plain;
}

/// In either number: "stages" has the word "stage", and "stage" the word "stages". `word` is in lower
/// case.
bool has_word(std::string text, std::string_view word) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word.ends_with('s')) word.remove_suffix(1);
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    std::size_t end = at + word.size();
    if (end < text.size() && text[end] == 's') ++end;
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end])))
      return true;
  }
  return false;
}

bool is_suffix(std::string_view path, std::string_view key) {
  return path == key || (path.ends_with(key) && path[path.size() - key.size() - 1] == '.');
}

}  // namespace

Meanings::Meanings(std::span<const MeaningPage> pages) {
  for (const MeaningPage& each : pages) {
    Page page{.below = std::string(each.below), .rows = {}};
    std::string heading;
    std::size_t sections = 0;
    std::vector<std::string> headings;
    for (const std::string_view line : split(each.page, '\n')) {
      if (line.starts_with('#'))
        ++sections, heading = trim(line.substr(line.find_first_not_of('#')));
      if (!line.starts_with("| ")) {
        if (!line.starts_with("|-")) headings.clear();
        continue;
      }
      const std::vector<std::string> cells = cells_of(line);
      if (headings.empty()) {
        headings = cells;
        continue;
      }
      const std::size_t column = meaning_column(headings);
      if (!has_keys(headings.front()) || column >= cells.size() || cells[column].empty()) continue;
      for (std::size_t c = 0; c < column && has_keys(headings[c]); ++c)
        for (const std::string& key : names_in(cells[c]))
          page.rows.push_back({heading + " " + headings[c], without_marks(key),
                               without_links(cells[column]), sections <= 1});
    }
    pages_.push_back(std::move(page));
  }
}

std::optional<std::string> Meanings::of(std::string_view path) const {
  const std::string plain = without_marks(path);
  const std::vector<std::string_view> words = split(plain, '.');
  const std::span mappings = std::span(words).first(words.size() - 1);
  // The number of the innermost mapping that a heading names; 0: none.
  const auto nearness = [&](const Row& row) {
    std::size_t i = row.first_section ? 0 : mappings.size();
    while (i > 0 && (mappings[i - 1] == "any" || !has_word(row.heading, mappings[i - 1]))) --i;
    return i;
  };
  const Row* best = nullptr;
  std::tuple<bool, std::size_t, std::size_t, bool> best_fit;
  bool ambiguous = false;
  for (std::size_t p = 0; p < pages_.size(); ++p) {
    const Page& page = pages_[p];
    if (!page.below.empty() && !plain.starts_with(page.below + ".")) continue;
    const bool of_file =
        mappings.empty() || plain == fmt::format("{}.{}", page.below, words.back());
    for (const Row& row : page.rows) {
      if (!is_suffix(plain, row.key)) continue;
      const std::tuple fit(row.key.find('.') != row.key.npos, pages_.size() - p, nearness(row),
                           of_file == row.first_section);
      if (best && fit < best_fit) continue;
      ambiguous = best && fit == best_fit && row.meaning != best->meaning;
      best = &row;
      best_fit = fit;
    }
  }
  return best && !ambiguous ? std::optional(best->meaning) : std::nullopt;
}

}  // namespace rehearse::cli
