#include "profiler/ingest/nsys_tables.h"

#include <fmt/core.h>

namespace rehearse::ingest::nsys {

using sqlite::Query;

Tables::Tables(sqlite3* db) {
  // Real tables only: a view or a virtual table could run code of the file's own.
  std::vector<std::string> names;
  Query query(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
  while (query.next()) names.emplace_back(query.text(0));
  for (const std::string& name : names) {
    std::string quoted;
    for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
    auto& columns = columns_[name];
    Query info(db, fmt::format("PRAGMA table_info(\"{}\")", quoted));
    while (info.next()) columns.emplace(info.text(1));
  }
}

bool Tables::are_of_an_export() const {
  for (const std::string_view table : kActivity)
    if (has(table)) return true;
  return has("OSRT_API") || has("META_DATA_EXPORT");
}

bool Tables::has(std::string_view table, std::string_view column) const {
  const auto found = columns_.find(table);
  return found != columns_.end() && found->second.contains(column);
}

std::string Tables::select(std::string_view table, Columns columns) const {
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) sql += ", ";
    sql += has(table, columns[i]) ? fmt::format("\"{}\"", columns[i]) : "NULL";
  }
  return sql + fmt::format(" FROM {}", table);
}

std::string Tables::process_of(std::string_view table) const {
  for (const std::string_view column : {"globalPid", "globalTid"})
    if (has(table, column))
      return fmt::format(
          "CASE typeof({0}) WHEN 'integer' THEN ({0} >> 24) & 16777215 WHEN 'null' THEN -1 END",
          column);
  return "-1";
}

std::optional<std::int64_t> number(const Query& row, int column) {
  if (!row.is_integer(column)) return std::nullopt;
  return row.integer(column);
}

std::optional<std::uint32_t> id_number(const Query& row, int column) {
  const auto id = unsigned_number<std::uint32_t>(row, column);
  return id == 0u ? std::nullopt : id;
}

}  // namespace rehearse::ingest::nsys
