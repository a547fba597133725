#include "sim/work/journal.h"

#include <ctime>
#include <mutex>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/sqlite/sqlite.h"
#include "sim/work/fingerprint.h"

namespace rehearse::work {
namespace {

namespace fs = std::filesystem;
using sqlite::execute, sqlite::number_of;

constexpr int kApplication = 0x52484a31;  // "RHJ1"
constexpr const char* kAnew = "remove it to start again, or name another file with --journal";

std::int64_t sum_of(const std::string& part, std::size_t item, std::string_view value) {
  Fingerprint sum;
  sum.add(part);
  sum.add(std::to_string(item));
  sum.add(value);
  return static_cast<std::int64_t>(sum.number());
}

/// The file next to a journal that says who has it open. The lock itself is SQLite's: a killed run
/// leaves this file, and the next one replaces it.
fs::path lock_of(const fs::path& path) { return path.string() + ".lock"; }

std::string this_run() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {} since {:%Y-%m-%d %H:%M:%S} UTC", ::getpid(), host,
                     fmt::gmtime(std::time(nullptr)));
}

/// SQLite's message about the file, in our words where they are more precise.
tl::unexpected<Error> refused(sqlite3* db, const fs::path& path) {
  switch (sqlite3_errcode(db)) {
    case SQLITE_BUSY: {
      const Result<std::string> holder = read_file(lock_of(path), 4096);
      return fail_in(
          path, fmt::format("is in use by {}", holder ? std::string(trim(*holder)) : "another run"),
          "one run at a time", "wait for it, or name another file with --journal");
    }
    case SQLITE_NOTADB: return fail_in(path, "is not a journal, or is damaged", {}, kAnew);
    case SQLITE_CORRUPT:
      return fail_in(path, fmt::format("is damaged: {}", sqlite3_errmsg(db)), {}, kAnew);
    default: return sqlite::sqlite_error(db, path, "cannot be used as a journal");
  }
}

tl::unexpected<Error> damaged(const fs::path& path, const std::string& what) {
  return fail_in(path, "is damaged: " + what, {}, kAnew);
}

}  // namespace

struct Journal::State {
  sqlite::SqlitePtr db = {};
  fs::path lock = {};  // once it is written
  std::optional<sqlite::Insert> insert = {};
  std::map<std::string, std::map<std::size_t, std::string>> held = {};
  std::size_t size = 0;
  std::mutex mutex = {};  // of all but `held`, which does not change

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    std::error_code ignored;
    if (!lock.empty()) fs::remove(lock, ignored);
  }

  /// A file without tables becomes a journal.
  bool begin(const std::string& key, const std::string& about) {
    return execute(
               db.get(),
               fmt::format("BEGIN IMMEDIATE; PRAGMA application_id = {};"
                           "CREATE TABLE work (key TEXT NOT NULL, about TEXT NOT NULL);"
                           "CREATE TABLE result (part TEXT NOT NULL, item INTEGER NOT NULL, "
                           "value BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (part, item)) "
                           "WITHOUT ROWID",
                           kApplication)) &&
           sqlite::Insert(db.get(), "INSERT INTO work VALUES (?, ?)").add(key).add(about).run() &&
           execute(db.get(), "COMMIT");
  }

  Status check_key(const fs::path& path, const std::string& key) {
    sqlite::Query work(db.get(), "SELECT key, about FROM work");
    if (!work.next())
      return work.ok() ? damaged(path, "it does not name its inputs") : refused(db.get(), path);
    if (work.text(0) == key) return {};
    return fail_in(
        path,
        fmt::format("belongs to other inputs, other options or another build of the program ({})",
                    work.text(1)),
        "the inputs, options and build that started it", kAnew);
  }

  Status read(const fs::path& path) {
    sqlite::Query rows(db.get(), "SELECT part, item, value, sum FROM result");
    while (rows.next()) {
      const std::string part(rows.text(0));
      const auto item = static_cast<std::size_t>(rows.integer(1));
      const std::string value(rows.text(2));
      if (rows.integer(3) != sum_of(part, item, value))
        return damaged(path, fmt::format("result {} of {} has a wrong checksum", item, part));
      held[part].emplace(item, value);
      ++size;
    }
    if (!rows.ok()) return refused(db.get(), path);
    return {};
  }
};

Journal::Journal(fs::path path, std::unique_ptr<State> state)
    : path_(std::move(path)), state_(std::move(state)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal::~Journal() = default;

Result<Journal> Journal::open(const fs::path& path, const std::string& key,
                              const std::string& about) {
  auto state = std::make_unique<State>();
  state->db = TRY(sqlite::open_sqlite(path, sqlite::SqliteAccess::kCreate));
  sqlite3* db = state->db.get();
  // Exclusive: no second run, and none of the shared memory that network file systems lack.
  execute(db, "PRAGMA locking_mode = EXCLUSIVE");
  const auto application = number_of(db, "PRAGMA application_id");
  const auto tables = number_of(db, "SELECT count(*) FROM sqlite_master");
  if (!application || !tables) return refused(db, path);
  const bool fresh = *tables == 0 && *application == 0;
  if (!fresh && *application != kApplication)
    return fail_in(path, "is a database, but not a journal",
                   "a new file, or a journal of the same work", "name another file with --journal");
  if (!fresh) TRY(state->check_key(path, key));
  // A commit is appended to a log: it survives the process without waiting for the disk.
  if (!execute(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"))
    return refused(db, path);
  if (fresh && !state->begin(key, about)) return refused(db, path);
  TRY(write_file(lock_of(path), this_run() + "\n"));
  state->lock = lock_of(path);
  TRY(state->read(path));
  state->insert.emplace(db, "INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?)");
  return Journal(path, std::move(state));
}

const std::map<std::size_t, std::string>& Journal::held(const std::string& part) const {
  static const std::map<std::size_t, std::string> none;
  const auto found = state_->held.find(part);
  return found == state_->held.end() ? none : found->second;
}

std::size_t Journal::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->size;
}

Status Journal::keep(const std::string& part, std::span<const Finished> finished) {
  const std::lock_guard lock(state_->mutex);
  sqlite3* db = state_->db.get();
  bool ok = execute(db, "BEGIN IMMEDIATE");
  for (const auto& [item, result] : finished)
    if (ok && result)
      ok = state_->insert->add(part)
               .add(static_cast<std::int64_t>(item))
               .add_bytes(*result)
               .add(sum_of(part, item, *result))
               .run();
  if (!ok || !execute(db, "COMMIT")) return sqlite::sqlite_error(db, path_, "cannot be written");
  for (const Finished& one : finished) state_->size += one.result ? 1 : 0;
  return {};
}

Status Journal::remove() {
  state_.reset();
  std::error_code error;
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(path_.string() + end, error);
  if (fs::exists(path_, error)) return fail_in(path_, "cannot be removed");
  return {};
}

}  // namespace rehearse::work
