#include "cli/output/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::cli {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t bytes = 0, seen = 0;
  while (bytes < text.size()) {
    const bool starts = (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80;
    if (starts && seen + 1 == width) break;
    if (starts) ++seen;
    ++bytes;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string_view word : split(text, ' ')) {
    std::string& line = lines.back();
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width)
      lines.push_back(shortened(word, width));
    else
      line += (line.empty() ? "" : " ") + shortened(word, width);
  }
  return lines;
}

std::size_t page_width() {
  constexpr std::size_t kWidth = 100, kLeast = 60;
  struct winsize size = {};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return kWidth;
  return std::max<std::size_t>(kLeast, size.ws_col);
}

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kSpace = "\u200b";  // of no width: it parts what would be a link
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (std::string_view("\\`*[]~").find(c) != std::string_view::npos)
      safe += std::string("\\") + c;
    else
      safe += c;
    if (c == '@' || c == '#' || text.substr(i).starts_with("://") ||
        text.substr(i).starts_with("www."))
      safe += kSpace;
  }
  return safe;
}

std::string bar(double share, std::size_t width) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8));
  std::string drawn;
  for (std::size_t i = 0; i < eighths / 8; ++i) drawn += "█";
  drawn += kEighths[eighths % 8];
  const std::size_t used = eighths / 8 + (eighths % 8 ? 1 : 0);
  return drawn + std::string(width - used, ' ');
}

void Table::add(std::vector<std::string> row) {
  REHEARSE_CHECK(row.size() == columns_.size(), "{} cells for {} columns", row.size(),
                 columns_.size());
  rows_.push_back(std::move(row));
}

std::pair<std::vector<std::size_t>, std::size_t> Table::widths(std::size_t shorten_to,
                                                               std::size_t rows) const {
  constexpr std::size_t kLeast = 12;
  std::vector<std::size_t> width(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (std::size_t r = 0; r < rows; ++r)
      width[c] = std::max(width[c], display_width(rows_[r][c]));
    if (columns_[c].align == Align::kLeft && !columns_[c].prose)
      width[c] = std::min(width[c], shorten_to);
    if (width[c] > 0 || rows_.empty())
      width[c] = std::max(width[c], display_width(columns_[c].heading));
  }
  const std::size_t page = page_width();
  const auto excess = [&]() -> std::size_t {
    std::size_t sum = 0;
    for (const std::size_t w : width) sum += w > 0 ? w + (sum > 0 ? 2 : 0) : 0;
    return sum > page ? sum - page : 0;
  };
  if (excess() > 0)
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].optional) width[c] = 0;
  // Takes from the widest column that has any to spare, until all fit or none has.
  const auto narrow = [&](const std::vector<std::size_t>& least) {
    while (excess() > 0) {
      std::size_t widest = columns_.size();
      for (std::size_t c = 0; c < columns_.size(); ++c)
        if (width[c] > least[c] && (widest == columns_.size() || width[c] > width[widest]))
          widest = c;
      if (widest == columns_.size()) return;
      --width[widest];
    }
  };
  std::vector<std::size_t> headings(columns_.size()), texts(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t cells = 0, word = 0;
    for (std::size_t r = 0; r < rows; ++r) cells = std::max(cells, display_width(rows_[r][c]));
    for (const std::string_view each : split(columns_[c].heading, ' '))
      word = std::max(word, display_width(each));
    headings[c] = std::max(cells, word);
    texts[c] = columns_[c].align == Align::kLeft ? std::max(kLeast, word) : headings[c];
  }
  narrow(headings);  // headings in several lines
  std::vector<std::size_t> prose = width;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].prose) prose[c] = texts[c];
  narrow(prose);  // sentences in several lines
  narrow(texts);  // names cut
  std::size_t hidden = 0;
  for (std::size_t c = columns_.size(); c-- > 1 && excess() > 0;)
    if (std::exchange(width[c], 0) > 0) ++hidden;
  return {width, hidden};
}

std::string Table::text(std::size_t shorten_to, std::size_t most_rows, std::string_view all) const {
  if (columns_.empty()) return "";
  const std::size_t shown = std::min(rows_.size(), most_rows);
  const auto fitted = widths(shorten_to, shown);
  const std::vector<std::size_t>& width = fitted.first;
  std::string out;
  const auto add_row = [&](const auto& text_of, bool is_heading = false) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::string content = printable(text_of(c));
      cells.push_back(width[c] == 0                     ? std::vector<std::string>{}
                      : columns_[c].prose || is_heading ? wrapped(content, width[c])
                      : columns_[c].align == Align::kLeft
                          ? std::vector{shortened(content, width[c])}
                          : std::vector{std::move(content)});
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t l = 0; l < lines; ++l) {
      std::string text;
      bool first = true;
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (width[c] == 0) continue;
        const std::string content = l < cells[c].size() ? cells[c][l] : "";
        const std::string pad(width[c] - std::min(width[c], display_width(content)), ' ');
        if (!std::exchange(first, false)) text += "  ";
        text += columns_[c].align == Align::kLeft ? content + pad : pad + content;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + '\n';
    }
  };
  add_row([&](std::size_t c) { return columns_[c].heading; }, true);
  for (std::size_t r = 0; r < shown; ++r) add_row([&](std::size_t c) { return rows_[r][c]; });
  if (shown < rows_.size())
    out +=
        fmt::format("… and {} more rows: --format json has all\n", grouped(rows_.size() - shown));
  if (const std::size_t hidden = fitted.second; hidden > 0)
    out += fmt::format("… and {}: --format {} has all\n", counted(hidden, "more column"), all);
  return out;
}

namespace {

/// Whether a spreadsheet would run the text of a cell instead of showing it.
bool is_formula(std::string_view text) {
  if (text.find_first_of("=+-@") != 0) return false;
  double number = 0;
  const std::string_view digits = text.substr(text.front() == '+' ? 1 : 0);
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view unit = digits.substr(static_cast<std::size_t>(rest - digits.data()));
  return error != std::errc{} || (!unit.empty() && unit != " %");
}

}  // namespace

std::string Table::csv() const {
  std::string out;
  const auto field = [&](const std::string& raw) {
    std::string text = printable(raw);
    if (is_formula(text)) text.insert(0, "'");
    if (text.find_first_of(",\"") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"') quoted += '"';
      quoted += c;
    }
    return quoted + '"';
  };
  for (std::size_t c = 0; c < columns_.size(); ++c)
    out += (c ? "," : "") + field(columns_[c].heading);
  out += "\n";
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c ? "," : "") + field(row[c]);
    out += "\n";
  }
  return out;
}

std::string Table::markdown() const {
  std::string out = "|", rule = "|";
  const auto escaped = [](const std::string& text) {
    std::string safe;
    for (const char c : printable(text)) {
      if (c == '|') safe += '\\';
      safe += c;
    }
    return safe;
  };
  for (const Column& column : columns_) {
    out += " " + escaped(column.heading) + " |";
    rule += column.align == Align::kLeft ? "---|" : "---:|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (const std::string& text : row) out += " " + escaped(text) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace rehearse::cli
