#include "cli/init/meanings.h"

#include <algorithm>
#include <cctype>

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

/// `word` is in lower case.
bool has_word(std::string text, std::string_view word) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
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
      if (headings.front() != "key" || column >= cells.size() || cells[column].empty()) continue;
      for (const std::string& key : names_in(cells.front()))
        page.rows.push_back(
            {heading, without_marks(key), without_links(cells[column]), sections <= 1});
    }
    pages_.push_back(std::move(page));
  }
}

std::optional<std::string> Meanings::of(std::string_view path) const {
  const std::string plain = without_marks(path);
  const std::size_t dot = plain.rfind('.');
  const std::string_view mapping = dot == plain.npos ? "" : std::string_view(plain).substr(0, dot);
  const std::string_view parent = mapping.substr(mapping.rfind('.') + 1);
  for (const Page& page : pages_) {
    if (!page.below.empty() && !plain.starts_with(page.below + ".")) continue;
    const Row* best = nullptr;
    int best_score = 0;
    bool ambiguous = false;
    for (const Row& row : page.rows) {
      if (!is_suffix(plain, row.key)) continue;
      const bool whole = row.key.find('.') != row.key.npos;
      const bool near = parent.empty() ? row.first_section : has_word(row.heading, parent);
      const int score = 1 + 4 * whole + 2 * near;
      if (score < best_score) continue;
      ambiguous = score == best_score;
      best = &row;
      best_score = score;
    }
    if (best && !ambiguous) return best->meaning;
  }
  return std::nullopt;
}

}  // namespace rehearse::cli
