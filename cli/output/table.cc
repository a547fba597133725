#include "cli/output/table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::cli {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
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

namespace {}  // namespace

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
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

std::string Table::text(std::size_t shorten_to, std::size_t most_rows) const {
  const std::size_t shown = std::min(rows_.size(), most_rows);
  const auto cell = [&](const std::string& text, std::size_t c) {
    return columns_[c].align == Align::kLeft ? shortened(printable(text), shorten_to) : text;
  };
  std::vector<std::size_t> width(columns_.size(), 0);  // 0: left out
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (std::size_t r = 0; r < shown; ++r)
      width[c] = std::max(width[c], display_width(cell(rows_[r][c], c)));
    if (width[c] > 0 || rows_.empty())
      width[c] = std::max(width[c], display_width(columns_[c].heading));
  }
  std::string out;
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (width[c] == 0) continue;
      const std::string content = cell(text_of(c), c);
      const std::string pad(width[c] - display_width(content), ' ');
      if (!text.empty()) text += "  ";
      text += columns_[c].align == Align::kLeft ? content + pad : pad + content;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) { return columns_[c].heading; });
  for (std::size_t r = 0; r < shown; ++r) line([&](std::size_t c) { return rows_[r][c]; });
  if (shown < rows_.size())
    out += fmt::format("… and {} more rows: --format csv has all\n", rows_.size() - shown);
  return out;
}

std::string Table::csv() const {
  std::string out;
  const auto field = [&](const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
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
