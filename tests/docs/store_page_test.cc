// docs/formats/store.md names every table and column of a store and no other, and its queries give
// the rows that it shows.
#include <memory>
#include <set>

#include <catch2/catch.hpp>
#include <sqlite3.h>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Block;

const fs::path kPage = test::source_file("docs/formats/store.md");

/// A store of the example.
fs::path imported() {
  const fs::path path = test::scratch_folder() / "three_steps.rehearse";
  REQUIRE(test::rehearse({"import", test::kExample, "-o", path.string()}).code == 0);
  return path;
}

class Store {
 public:
  explicit Store(const fs::path& path = imported()) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    db_.reset(db);
  }

  /// The rows of a query, each as texts with " | " between.
  std::vector<std::string> rows(const std::string& sql) const {
    sqlite3_stmt* raw = nullptr;
    INFO(sql);
    REQUIRE(sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) == SQLITE_OK);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, &sqlite3_finalize);
    std::vector<std::string> found;
    while (sqlite3_step(raw) == SQLITE_ROW) {
      std::string row;
      for (int c = 0; c < sqlite3_column_count(raw); ++c) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw, c));
        row += (c > 0 ? " | " : "") + std::string(text ? text : "NULL");
      }
      found.push_back(std::move(row));
    }
    return found;
  }

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_{nullptr, &sqlite3_close};
};

/// What a table of the page lists in its first column.
std::vector<std::string> listed(const std::string& section) {
  std::vector<std::string> names;
  for (const std::string_view line : split(section, '\n'))
    if (line.starts_with("| `")) {
      const std::string_view rest = line.substr(3);
      names.emplace_back(rest.substr(0, rest.find('`')));
    }
  return names;
}

TEST_CASE("the page of the store lists the columns of every table and view, and no other") {
  const Store store;
  std::set<std::string> tables;
  for (const std::string& table :
       store.rows("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")) {
    tables.insert(table);
    INFO(table);
    CHECK(listed(test::section_of(kPage, "### " + table)) ==
          store.rows("SELECT name FROM pragma_table_info('" + table + "') ORDER BY cid"));
  }
  CHECK(tables.size() == 21);
  const std::string text = test::text_of(kPage);
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with("### ")) CHECK(tables.contains(std::string(line.substr(4))));
}

TEST_CASE("the page of the store has the same names for numbers as the store") {
  const Store store;
  for (const std::string table : {"host_op", "gpu_op", "sync"}) {
    const std::string section = test::section_of(kPage, "### " + table);
    for (const std::string& word :
         store.rows("SELECT id || ' ' || name FROM kind WHERE of = '" + table + "' ORDER BY id"))
      CHECK(section.find(word) != std::string::npos);
  }
}

TEST_CASE("the page of the store has the version and the id of the file") {
  const Store store;
  const std::string section = test::section_of(kPage, "## File");
  CHECK(section.find("**" + store.rows("PRAGMA user_version").front() + "**") != std::string::npos);
  CHECK(store.rows("SELECT printf('0x%X', application_id) FROM pragma_application_id").front() ==
        "0x52485253");
  CHECK(section.find("0x52485253") != std::string::npos);
}

TEST_CASE("the queries of the page of the store give the rows that it shows") {
  const Store store;
  const std::vector<Block> blocks = test::blocks_of(kPage);
  std::size_t checked = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].language != "sql") continue;
    INFO(kPage << ":" << blocks[b].line);
    REQUIRE(b + 1 < blocks.size());
    REQUIRE(blocks[b + 1].language == "rows");
    CHECK(store.rows(test::join_lines(blocks[b].lines)) == blocks[b + 1].lines);
    ++checked;
  }
  CHECK(checked == 5);
}

TEST_CASE("the page of the history lists the columns of its tables, its version and its id") {
  const fs::path page = test::source_file("docs/formats/history.md");
  const fs::path path = test::scratch_folder() / "a.history";
  REQUIRE(test::rehearse({"check", "--history", path.string(), "--accept", "--candidate",
                          "examples/recordings/gate_before.json"})
              .code == 0);
  const Store history(path);
  const auto tables = history.rows("SELECT name FROM sqlite_master WHERE type = 'table'");
  CHECK(tables.size() == 4);
  for (const std::string& table : tables) {
    INFO(table);
    CHECK(listed(test::section_of(page, "## " + table)) ==
          history.rows("SELECT name FROM pragma_table_info('" + table + "') ORDER BY cid"));
  }
  const std::string text = test::text_of(page);
  CHECK(text.find("**" + history.rows("PRAGMA user_version").front() + "**") != std::string::npos);
  CHECK(text.find(history.rows("SELECT printf('0x%X', application_id) FROM pragma_application_id")
                      .front()) != std::string::npos);
  CHECK(history.rows("SELECT count(*), sum(whole) FROM run").front() == "1 | 1");
  CHECK(history.rows("SELECT count(*) FROM step").front() == "20");
  CHECK(history.rows("SELECT name FROM op WHERE kind = 'kernel' ORDER BY level_s DESC").front() ==
        "gemm_128x128_tn");
}

}  // namespace
}  // namespace rehearse
