// A thin, checked wrapper of the SQLite C interface, for the sources that open databases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace rehearse::sqlite {

struct CloseSqlite {
  void operator()(sqlite3* db) const;
  void operator()(sqlite3_stmt* statement) const;
};
using SqlitePtr = std::unique_ptr<sqlite3, CloseSqlite>;
using StatementPtr = std::unique_ptr<sqlite3_stmt, CloseSqlite>;

enum class SqliteAccess { kRead, kCreate };
Result<SqlitePtr> open_sqlite(const std::filesystem::path& path, SqliteAccess access);

/// The last error of `db`, as a Diagnostic on `path`.
tl::unexpected<Error> sqlite_error(sqlite3* db, const std::filesystem::path& path,
                                   std::string_view what);

/// The rows of a query, one after the other.
class Query {
 public:
  Query(sqlite3* db, const std::string& sql);
  /// Moves to the next row. False at the end and on an error.
  bool next();
  /// Whether the query ran without an error so far.
  bool ok() const { return ok_; }

  std::int64_t integer(int column) const;
  double real(int column) const;
  bool is_null(int column) const;
  /// A column may contain a value of any type, whatever its declared type.
  bool is_integer(int column) const;
  std::string_view text(int column) const;
  int columns() const;
  /// A value of any type as bytes: a number has eight, NULL has none.
  std::string bytes(int column) const;
  /// Absent for NULL and for a number that T cannot hold.
  template <class T>
  std::optional<T> optional(int column) const {
    if (is_null(column)) return std::nullopt;
    const std::int64_t value = integer(column);
    if (value < 0 || static_cast<std::uint64_t>(value) > std::numeric_limits<T>::max())
      return std::nullopt;
    return static_cast<T>(value);
  }

 private:
  StatementPtr statement_;
  bool ok_;
};

/// The only number that a query returns; nothing if it fails.
std::optional<std::int64_t> number_of(sqlite3* db, const std::string& sql);

/// Runs statements without results; false on an error.
bool execute(sqlite3* db, const std::string& sql);

/// A statement that writes one row each time it is run.
class Insert {
 public:
  /// `sql` with a question mark for each value.
  Insert(sqlite3* db, const std::string& sql);
  /// The next value, from the first on.
  Insert& add(std::int64_t value);
  Insert& add(double value);  ///< one that is no number becomes NULL
  Insert& add(std::string_view text);
  Insert& add_bytes(std::string_view bytes);
  Insert& add_null();
  /// Writes the row; false on an error, including errors of the values.
  bool run();

 private:
  StatementPtr statement_;
  int next_ = 1;
  bool ok_;
};

/// Inserts rows of integers, many per statement: a statement costs more than a row.
class IntegerInserter {
 public:
  IntegerInserter(sqlite3* db, const std::string& table, std::size_t columns);
  void add(std::span<const std::optional<std::int64_t>> row);
  /// Writes what is still buffered.
  void flush();
  bool ok() const { return ok_; }

 private:
  void write(sqlite3_stmt* statement, std::size_t first, std::size_t rows);

  std::size_t columns_;
  StatementPtr one_;
  StatementPtr many_;
  std::vector<std::optional<std::int64_t>> buffer_;
  bool ok_;
};

}  // namespace rehearse::sqlite
