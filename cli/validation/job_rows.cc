#include "cli/validation/job_rows.h"

#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// A mapping of YAML by the path of its keys.
struct Node {
  std::string value = {};
  std::map<std::string, Node> children = {};
};

/// A cell as a YAML value: lists and mappings unchanged, other text quoted if YAML would interpret
/// it.
std::string scalar(std::string_view cell) {
  if (cell.starts_with('[') || cell.starts_with('{') ||
      cell.find_first_of(":#,[]{}&*!|>'\"%@`\\") == std::string_view::npos)
    return std::string(cell);
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string flow_style(const Node& node) {
  if (node.children.empty()) return node.value;
  return "{" +
         join(node.children, ", ",
              [](const auto& child) { return child.first + ": " + flow_style(child.second); }) +
         "}";
}

}  // namespace

JobRows::JobRows(const CsvTable& table) : table_(table) {
  for (const std::string& column : table.columns())
    if (column.find('.') != std::string::npos) columns_.push_back(column);
}

Result<YamlFile> JobRows::yaml(std::size_t row) const {
  Node root;
  for (const std::string& column : columns_) {
    const std::string_view cell = trim(table_.cell(row, column));
    if (cell.empty()) continue;
    Node* at = &root;
    for (const std::string_view key : split(column, '.')) at = &at->children[std::string(key)];
    at->value = scalar(cell);
  }
  return YamlFile::parse(flow_style(root) + "\n",
                         std::filesystem::path(table_.name()).filename().string());
}

bool JobRows::drop_unknown(const Error& error, std::vector<std::string>& unknown) {
  std::size_t dropped = 0;
  for (const Diagnostic& d : error.diagnostics)
    if (d.problem == "unknown key")
      dropped += std::erase_if(columns_, [&](const std::string& column) {
        const bool of_it = column == d.key || column.starts_with(d.key + ".");
        if (of_it) unknown.push_back(column);
        return of_it;
      });
  return dropped > 0;
}

Result<JobFile> JobRows::job(std::size_t row, std::vector<std::string>& unknown) {
  return read<JobFile>(row, unknown, [](const YamlMap& root, const std::filesystem::path& folder) {
    return read_job(root, folder);
  });
}

}  // namespace rehearse::cli
