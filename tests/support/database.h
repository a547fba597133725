// SQLite files for tests, built statement by statement.
#pragma once

#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <sqlite3.h>

namespace rehearse::test {

class Database {
 public:
  explicit Database(const std::filesystem::path& path) {
    REQUIRE(sqlite3_open(path.c_str(), &db_) == SQLITE_OK);
  }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql) {
    INFO(sql);
    const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    INFO(sqlite3_errmsg(db_));
    REQUIRE(code == SQLITE_OK);
  }

 private:
  sqlite3* db_ = nullptr;
};

}  // namespace rehearse::test
