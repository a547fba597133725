#include "cli/check/run_store.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "profiler/compare/effect.h"
#include "profiler/replay/steps.h"
#include "profiler/trace/shapes.h"
#include "sim/base/text.h"
#include "sim/sqlite/sqlite.h"
#include "sim/work/bytes.h"
#include "sim/work/fingerprint.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using compare::OpSlot, compare::Run, sqlite::number_of, sqlite::Query;

constexpr std::uint32_t kApplication = 0x52484843;  // "RHHC", in the header of the file
constexpr int kVersion = 2;
constexpr int kUncheckedVersion = 1;  // without a digest
constexpr const char* kAnew = "name a new file, which --accept creates";

constexpr const char* kSchema = R"(
CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, date TEXT NOT NULL,
  level_s REAL NOT NULL, allowed REAL NOT NULL, sum INTEGER NOT NULL UNIQUE, ranks INTEGER NOT NULL,
  devices TEXT NOT NULL, steps_from TEXT NOT NULL, memory_bytes REAL, whole INTEGER NOT NULL);
CREATE TABLE step (run INTEGER NOT NULL, step INTEGER NOT NULL, step_time_s REAL NOT NULL,
  compute_s REAL, exposed_communication_s REAL, copies_s REAL, launch_gaps_s REAL, energy_j REAL,
  PRIMARY KEY (run, step)) WITHOUT ROWID;
CREATE TABLE op (run INTEGER NOT NULL, op INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  origin TEXT NOT NULL, layer TEXT NOT NULL, shapes TEXT NOT NULL, launch TEXT NOT NULL,
  place REAL NOT NULL, calls REAL NOT NULL, level_s REAL NOT NULL, times BLOB NOT NULL,
  PRIMARY KEY (run, op)) WITHOUT ROWID;
)";
constexpr const char* kDigestTable = "CREATE TABLE IF NOT EXISTS digest (sum INTEGER NOT NULL)";

/// The series of a run, in the order of the columns of `step`.
using StepSeries = std::vector<double>;
constexpr std::array<StepSeries Run::*, 6> kSeries = {
    &Run::step_time, &Run::compute,     &Run::exposed_communication,
    &Run::copies,    &Run::launch_gaps, &Run::energy};

std::string bytes_of(const StepSeries& series) {
  static_assert(std::endian::native == std::endian::little);  // as the format has them
  return {reinterpret_cast<const char*>(series.data()), series.size() * sizeof(double)};
}

/// A checksum of everything that is stored of a run except its name and date.
std::uint64_t sum_of(const Run& run) {
  work::Packer packer;
  packer.put(std::uint64_t{run.ranks});
  packer.put(join(run.devices, "\n"));
  packer.put(run.steps_from);
  packer.put(run.memory ? run.memory->b() : -1.0);
  for (const auto series : kSeries) packer.put(bytes_of(run.*series));
  for (const OpSlot& slot : run.slots) {
    for (const std::string* text : {&slot.name, &slot.from, &slot.layer, &slot.shapes, &slot.grid})
      packer.put(*text);
    packer.put(to_string(slot.kind));
    packer.put(slot.place);
    packer.put(slot.calls);
    packer.put(bytes_of(slot.times));
  }
  work::Fingerprint sum;
  sum.add(packer.take());
  return sum.number();
}

tl::unexpected<Error> damaged(const fs::path& path, const std::string& what) {
  return fail_in(path, "is a damaged history: " + what, "a file written by rehearse check --accept",
                 "restore a backup, or " + std::string(kAnew));
}

tl::unexpected<Error> not_as_written(const fs::path& path, const KeptRun& kept) {
  return damaged(path, fmt::format("the data of run '{}' are damaged", kept.name));
}

tl::unexpected<Error> refused(sqlite3* db, const fs::path& path) {
  return sqlite::sqlite_error(db, path, "cannot be read as a history");
}

/// A hash of all rows; nothing if they cannot be read.
std::optional<std::int64_t> digest_of(sqlite3* db) {
  work::Fingerprint sum;
  for (const char* rows : {"SELECT * FROM run ORDER BY id", "SELECT * FROM step ORDER BY run, step",
                           "SELECT * FROM op ORDER BY run, op"}) {
    sum.add(rows);
    Query query(db, rows);
    while (query.next())
      for (int column = 0; column < query.columns(); ++column) sum.add(query.bytes(column));
    if (!query.ok()) return std::nullopt;
  }
  return static_cast<std::int64_t>(sum.number());
}

/// Opens a store for reading or writing, in a transaction for which other processes wait.
Result<sqlite::SqlitePtr> begin(const fs::path& path, const char* how) {
  sqlite::SqlitePtr db = TRY(sqlite::open_sqlite(path, sqlite::SqliteAccess::kCreate));
  if (!sqlite::execute(db.get(), "PRAGMA busy_timeout = 30000"))
    return sqlite::sqlite_error(db.get(), path, "cannot be opened");
  if (!sqlite::execute(db.get(), how))
    return sqlite::sqlite_error(db.get(), path, "cannot be used as a history");
  return db;
}

/// Whether the file has tables yet: an empty file is a store without runs. Fails if the tables are
/// not ours, are of another version, or were changed by anything else.
Result<bool> has_tables(sqlite3* db, const fs::path& path) {
  const auto tables = number_of(db, "SELECT count(*) FROM sqlite_master");
  const auto application = number_of(db, "PRAGMA application_id");
  const auto version = number_of(db, "PRAGMA user_version");
  if (!tables || !application || !version) return refused(db, path);
  if (*tables == 0) return false;
  if (*application != kApplication)
    return fail_in(path, "is a database, but not a history",
                   "a new file, or one written by --accept");
  if (*version == kUncheckedVersion) return true;
  if (*version != kVersion)
    return fail_in(path, fmt::format("is a history of version {}", *version),
                   fmt::format("version {}", kVersion), kAnew);
  const auto noted = number_of(db, "SELECT sum FROM digest"), digest = digest_of(db);
  if (!noted || noted != digest) return damaged(path, "its checksum is wrong");
  return true;
}

std::optional<compare::OpKind> kind_from(std::string_view text) {
  for (const compare::OpKind kind :
       {compare::OpKind::kKernel, compare::OpKind::kCollective, compare::OpKind::kCopy,
        compare::OpKind::kSet, compare::OpKind::kHost})
    if (to_string(kind) == text) return kind;
  return std::nullopt;
}

std::optional<std::string_view> steps_from(std::string_view text) {
  using replay::StepSource;
  for (const StepSource source : {StepSource::kMarks, StepSource::kRanges, StepSource::kRepetition,
                                  StepSource::kKernels, StepSource::kGraphs, StepSource::kSpan})
    if (replay::to_string(source) == text) return replay::to_string(source);
  return std::nullopt;
}

/// Reads the steps and ops of one run. The checksum detects inconsistent contents.
Status read_whole(sqlite3* db, const fs::path& path, std::int64_t id, const KeptRun& kept,
                  Run& run) {
  Query steps(db, fmt::format("SELECT step_time_s, compute_s, exposed_communication_s, copies_s, "
                              "launch_gaps_s, energy_j FROM step WHERE run = {} ORDER BY step",
                              id));
  while (steps.next())
    for (std::size_t column = 0; column < kSeries.size(); ++column)
      if (const int c = static_cast<int>(column); !steps.is_null(c))
        (run.*kSeries[column]).push_back(steps.real(c));
  if (!steps.ok()) return refused(db, path);
  if (run.steps() < 2) return not_as_written(path, kept);
  Query ops(db, fmt::format("SELECT kind, name, origin, layer, shapes, launch, place, calls, times "
                            "FROM op WHERE run = {} ORDER BY op",
                            id));
  while (ops.next()) {
    const auto kind = kind_from(ops.text(0));
    const std::string_view times = ops.text(8);
    if (!kind || times.size() != run.steps() * sizeof(double))
      return damaged(path, fmt::format("an op of run '{}' is damaged", kept.name));
    OpSlot slot{.kind = *kind,
                .name = std::string(ops.text(1)),
                .from = std::string(ops.text(2)),
                .layer = std::string(ops.text(3)),
                .shapes = std::string(ops.text(4)),
                .grid = std::string(ops.text(5)),
                .place = ops.real(6),
                .calls = ops.real(7),
                .times = StepSeries(run.steps())};
    std::memcpy(slot.times.data(), times.data(), times.size());
    run.slots.push_back(std::move(slot));
  }
  if (!ops.ok()) return refused(db, path);
  if (sum_of(run) != kept.sum || compare::level_of(run.step_time) != kept.level)
    return not_as_written(path, kept);
  // Histories of earlier versions have the spacing of the recordings.
  for (OpSlot& slot : run.slots) slot.shapes = trace::evenly_spaced(slot.shapes);
  return {};
}

bool write_whole(sqlite3* db, std::int64_t id, const Run& run) {
  sqlite::Insert step(db, "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t s = 0; s < run.steps(); ++s) {
    step.add(id).add(static_cast<std::int64_t>(s));
    for (const auto series : kSeries)
      if ((run.*series).empty())
        step.add_null();
      else
        step.add((run.*series)[s]);
    if (!step.run()) return false;
  }
  sqlite::Insert op(db, "INSERT INTO op VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const OpSlot& slot = run.slots[i];
    op.add(id).add(static_cast<std::int64_t>(i)).add(to_string(slot.kind));
    for (const std::string* text : {&slot.name, &slot.from, &slot.layer, &slot.shapes, &slot.grid})
      op.add(*text);
    op.add(slot.place).add(slot.calls).add(compare::level_of(slot.times));
    if (!op.add_bytes(bytes_of(slot.times)).run()) return false;
  }
  return true;
}

/// Deletes runs that are older than those to keep.
std::string forget() {
  return fmt::format(
      "DELETE FROM run WHERE id NOT IN (SELECT id FROM run ORDER BY id DESC LIMIT {0});"
      "UPDATE run SET whole = 0 WHERE id NOT IN (SELECT id FROM run ORDER BY id DESC LIMIT {1});"
      "DELETE FROM step WHERE run NOT IN (SELECT id FROM run WHERE whole);"
      "DELETE FROM op WHERE run NOT IN (SELECT id FROM run WHERE whole);",
      kKeptLevels, kKeptWhole);
}

}  // namespace

bool is_run_store(const fs::path& path) {
  // https://sqlite.org/fileformat.html: a text of 16 bytes, and at offset 68 the application id.
  std::array<char, 72> header = {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(header.data(), header.size())) return false;
  std::uint32_t application = 0;
  for (std::size_t i = 68; i < 72; ++i)
    application = application << 8 | static_cast<unsigned char>(header[i]);
  return std::memcmp(header.data(), "SQLite format 3", 16) == 0 && application == kApplication;
}

KeptRun kept(Run run, std::string name, double allowed) {
  const auto shorten = [&](StepSeries& series) {
    if (series.size() > kKeptSteps)
      series.erase(series.begin(), series.end() - static_cast<std::ptrdiff_t>(kKeptSteps));
  };
  for (const auto series : kSeries) shorten(run.*series);
  for (OpSlot& slot : run.slots) shorten(slot.times);
  run.windows.clear();
  KeptRun kept{.name = std::move(name),
               .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
               .level = compare::level_of(run.step_time),
               .allowed = allowed,
               .sum = sum_of(run),
               .run = std::nullopt};
  kept.run = std::move(run);
  return kept;
}

Result<std::vector<KeptRun>> read_runs(const fs::path& path) {
  const sqlite::SqlitePtr opened = TRY(begin(path, "BEGIN"));
  sqlite3* db = opened.get();
  const bool filled = TRY(has_tables(db, path));
  std::vector<KeptRun> runs;
  if (!filled) return runs;
  Query rows(db,
             "SELECT id, name, date, level_s, allowed, sum, ranks, devices, steps_from, "
             "memory_bytes, whole FROM run ORDER BY id");
  while (rows.next()) {
    KeptRun kept{.name = std::string(rows.text(1)),
                 .date = std::string(rows.text(2)),
                 .level = rows.real(3),
                 .allowed = rows.real(4),
                 .sum = static_cast<std::uint64_t>(rows.integer(5)),
                 .run = std::nullopt};
    const auto from = steps_from(rows.text(8));
    const std::int64_t ranks = rows.integer(6);
    if (!(kept.level > 0) || !std::isfinite(kept.level) || !(kept.allowed >= 0) ||
        !std::isfinite(kept.allowed) || ranks < 1 || !from)
      return not_as_written(path, kept);
    if (rows.integer(10) != 0) {
      Run run{.source = kept.name, .ranks = static_cast<std::size_t>(ranks), .steps_from = *from};
      if (!rows.text(7).empty())
        for (const std::string_view name : split(rows.text(7), '\n'))
          run.devices.emplace_back(name);
      if (!rows.is_null(9)) run.memory = Bytes::b(rows.real(9));
      TRY(read_whole(db, path, rows.integer(0), kept, run));
      kept.run = std::move(run);
    }
    runs.push_back(std::move(kept));
  }
  if (!rows.ok()) return refused(db, path);
  return runs;
}

Result<bool> add_run(const fs::path& path, const KeptRun& kept) {
  const sqlite::SqlitePtr opened = TRY(begin(path, "BEGIN IMMEDIATE"));
  sqlite3* db = opened.get();
  const auto wrong = [&] { return sqlite::sqlite_error(db, path, "cannot be written"); };
  const bool filled = TRY(has_tables(db, path));
  if (!filled &&
      !sqlite::execute(db, fmt::format("PRAGMA application_id = {};{}", kApplication, kSchema)))
    return wrong();
  const auto sum = static_cast<std::int64_t>(kept.sum);
  const auto same = number_of(db, fmt::format("SELECT count(*) FROM run WHERE sum = {}", sum));
  if (!same) return refused(db, path);
  if (*same > 0) return false;
  const Run& run = *kept.run;
  sqlite::Insert row(db, "INSERT INTO run VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)");
  row.add(kept.name).add(kept.date).add(kept.level).add(kept.allowed).add(sum);
  row.add(static_cast<std::int64_t>(run.ranks)).add(join(run.devices, "\n")).add(run.steps_from);
  if (run.memory)
    row.add(run.memory->b());
  else
    row.add_null();
  if (!row.run()) return wrong();
  const auto id = number_of(db, "SELECT max(id) FROM run");
  if (!id || !write_whole(db, *id, run) || !sqlite::execute(db, forget())) return wrong();
  const auto digest = digest_of(db);
  if (!digest ||
      !sqlite::execute(db, fmt::format("PRAGMA user_version = {}; {}; DELETE FROM digest;"
                                       "INSERT INTO digest VALUES ({}); COMMIT",
                                       kVersion, kDigestTable, *digest)))
    return wrong();
  return true;
}

}  // namespace rehearse::cli
