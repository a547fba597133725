#include "cli/report/accuracy.h"

#include <algorithm>

#include "cli/report/report_files.h"

namespace rehearse::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The cells of "| a | b |"; none of a line that is no row.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  if (line.empty() || line.front() != '|') return cells;
  line.remove_prefix(1);
  for (std::size_t bar = line.find('|'); bar != std::string_view::npos; bar = line.find('|')) {
    cells.push_back(trimmed(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

}  // namespace

Json accuracy_in(std::string_view page, const std::vector<std::string>& suites) {
  Json rows = Json::array();
  std::vector<std::string_view> headings;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::vector<std::string_view> cells = cells_of(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (cells.empty()) continue;
    if (cells.front() == "suite") {
      headings = cells;
    } else if (cells.size() == headings.size() &&
               std::any_of(suites.begin(), suites.end(), [&](const std::string& suite) {
                 return cells.front().starts_with(suite);
               })) {
      Json row = Json::object();
      for (std::size_t c = 0; c < cells.size(); ++c) row[headings[c]] = cells[c];
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Json accuracy_of(const std::vector<std::string>& suites) {
  return accuracy_in(report_files::accuracy_md, suites);
}

}  // namespace rehearse::cli
