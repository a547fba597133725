#include "sim/sqlite/sqlite.h"

#include <cstring>

#include <fmt/core.h>
#include <sqlite3.h>

#include "sim/base/file.h"

namespace rehearse::sqlite {
namespace {

constexpr std::size_t kRowsPerStatement = 64;

StatementPtr prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return StatementPtr(statement);
}

std::string insert_sql(const std::string& table, std::size_t columns, std::size_t rows) {
  std::string row = "(?";
  for (std::size_t i = 1; i < columns; ++i) row += ",?";
  row += ")";
  std::string sql = fmt::format("INSERT INTO {} VALUES {}", table, row);
  for (std::size_t i = 1; i < rows; ++i) sql += "," + row;
  return sql;
}

/// A database in memory, for a file that has lost its name, by which alone SQLite opens files.
Result<SqlitePtr> open_nameless(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  SqlitePtr db(raw);
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(text.size()));
  if (code != SQLITE_OK || copy == nullptr) return sqlite_error(raw, path, "cannot be opened");
  std::memcpy(copy, text.data(), text.size());
  const auto size = static_cast<sqlite3_int64>(text.size());
  if (sqlite3_deserialize(raw, "main", copy, size, size,
                          SQLITE_DESERIALIZE_READONLY | SQLITE_DESERIALIZE_FREEONCLOSE) !=
      SQLITE_OK)
    return sqlite_error(raw, path, "cannot be opened");
  return db;
}

}  // namespace

void CloseSqlite::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void CloseSqlite::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<SqlitePtr> open_sqlite(const std::filesystem::path& path, SqliteAccess access) {
  std::error_code failed;
  if (access == SqliteAccess::kRead && std::filesystem::exists(path, failed) &&
      std::filesystem::canonical(path, failed).empty())
    return open_nameless(path);
  const int flags = access == SqliteAccess::kRead ? SQLITE_OPEN_READONLY
                                                  : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  SqlitePtr db(raw);
  if (code != SQLITE_OK) return sqlite_error(raw, path, "cannot be opened");
  return db;
}

tl::unexpected<Error> sqlite_error(sqlite3* db, const std::filesystem::path& path,
                                   std::string_view what) {
  if (db && sqlite3_errcode(db) == SQLITE_BUSY)
    return fail_in(path, "is in use by another program", "a file that no program writes");
  return fail_in(path, fmt::format("{}: {}", what, db ? sqlite3_errmsg(db) : "out of memory"));
}

Query::Query(sqlite3* db, const std::string& sql)
    : statement_(prepare(db, sql)), ok_(statement_ != nullptr) {}

bool Query::next() {
  if (!ok_) return false;
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) ok_ = false;
  return code == SQLITE_ROW;
}

std::int64_t Query::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Query::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
bool Query::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}
bool Query::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}

std::string_view Query::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (!text) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

int Query::columns() const { return sqlite3_column_count(statement_.get()); }

std::string Query::bytes(int column) const {
  const auto eight = [](auto number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  };
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_NULL: return {};
    case SQLITE_INTEGER: return eight(integer(column));
    case SQLITE_FLOAT: return eight(real(column));
    default: return std::string(text(column));
  }
}

std::optional<std::int64_t> number_of(sqlite3* db, const std::string& sql) {
  Query query(db, sql);
  if (!query.next()) return std::nullopt;
  return query.integer(0);
}

bool execute(sqlite3* db, const std::string& sql) {
  return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

Insert::Insert(sqlite3* db, const std::string& sql)
    : statement_(prepare(db, sql)), ok_(statement_ != nullptr) {}

Insert& Insert::add(std::int64_t value) {
  ok_ = ok_ && sqlite3_bind_int64(statement_.get(), next_++, value) == SQLITE_OK;
  return *this;
}
Insert& Insert::add(double value) {
  ok_ = ok_ && sqlite3_bind_double(statement_.get(), next_++, value) == SQLITE_OK;
  return *this;
}
Insert& Insert::add(std::string_view text) {
  ok_ = ok_ && sqlite3_bind_text64(statement_.get(), next_++, text.data(), text.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK;
  return *this;
}
Insert& Insert::add_bytes(std::string_view bytes) {
  ok_ = ok_ && sqlite3_bind_blob64(statement_.get(), next_++, bytes.data(), bytes.size(),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
  return *this;
}
Insert& Insert::add_null() {
  ok_ = ok_ && sqlite3_bind_null(statement_.get(), next_++) == SQLITE_OK;
  return *this;
}

bool Insert::run() {
  ok_ = ok_ && sqlite3_step(statement_.get()) == SQLITE_DONE;
  sqlite3_reset(statement_.get());
  next_ = 1;
  return ok_;
}

IntegerInserter::IntegerInserter(sqlite3* db, const std::string& table, std::size_t columns)
    : columns_(columns),
      one_(prepare(db, insert_sql(table, columns, 1))),
      many_(prepare(db, insert_sql(table, columns, kRowsPerStatement))),
      ok_(one_ && many_) {
  buffer_.reserve(columns * kRowsPerStatement);
}

void IntegerInserter::add(std::span<const std::optional<std::int64_t>> row) {
  buffer_.insert(buffer_.end(), row.begin(), row.end());
  if (buffer_.size() < columns_ * kRowsPerStatement) return;
  write(many_.get(), 0, kRowsPerStatement);
  buffer_.clear();
}

void IntegerInserter::flush() {
  for (std::size_t i = 0; i * columns_ < buffer_.size(); ++i) write(one_.get(), i, 1);
  buffer_.clear();
}

void IntegerInserter::write(sqlite3_stmt* statement, std::size_t first, std::size_t rows) {
  if (!ok_) return;
  sqlite3_clear_bindings(statement);  // to NULL
  for (std::size_t i = 0; i < rows * columns_; ++i)
    if (const std::optional<std::int64_t>& value = buffer_[first * columns_ + i])
      sqlite3_bind_int64(statement, static_cast<int>(i + 1), *value);
  ok_ = sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_reset(statement);
}

}  // namespace rehearse::sqlite
